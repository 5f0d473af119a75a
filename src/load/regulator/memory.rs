//! Memory: refusing more and more while the last of it fills, the least important first.
//!
//! Other pressure ends when less is done; memory that is full ends the process. So from 95 % of
//! the bound on a growing share is refused, and all at the bound, whatever the level says.

/// The pressure at which refusing begins; at 1.0 everything is refused.
const BEGIN: f64 = 0.95;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory;

impl Memory {
    /// The share to refuse at a pressure of memory, 1.0 at the bound.
    pub fn refuse(pressure: f64) -> f64 {
        if pressure.is_nan() { 0.0 } else { ((pressure - BEGIN) / (1.0 - BEGIN)).clamp(0.0, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusing_grows_from_nothing_to_all() {
        for (pressure, right) in [(0.5, 0.0), (0.95, 0.0), (0.975, 0.5), (1.0, 1.0), (3.0, 1.0)] {
            assert!((Memory::refuse(pressure) - right).abs() < 1e-9, "{pressure}");
        }
        assert!(Memory::refuse(f64::NAN).abs() < f64::EPSILON);
    }
}

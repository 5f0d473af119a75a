//! The live screen: draws what is seen, and hears the keys.
//!
//! Another thread looks at the server, so one that does not answer never holds up a key. The
//! terminal is given back as it was however this ends: by a key, a failure, or a panic (`ratatui`
//! restores it then).

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, TryRecvError};

use anyhow::{Context, bail};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::Look;
use super::glimpse::Glimpse;
use super::screen::Screen;
use crate::time::Duration;

/// How late a look may be shown.
const KEYS_WAIT: Duration = Duration::from_millis(50);

/// Rows that a page key passes over.
const PAGE: isize = 10;

pub(super) fn run(first: Glimpse, looks: &Receiver<Look>) -> anyhow::Result<()> {
    let terminal = ratatui::try_init().context("cannot draw on this terminal");
    let ended = terminal.and_then(|mut terminal| show(&mut terminal, first, looks));
    ratatui::restore();
    ended
}

fn show(
    terminal: &mut DefaultTerminal,
    first: Glimpse,
    looks: &Receiver<Look>,
) -> anyhow::Result<()> {
    let mut screen = Screen::new(first);
    loop {
        terminal.draw(|frame| screen.draw(frame)).context("cannot draw on this terminal")?;
        if event::poll(KEYS_WAIT.as_std()).context("cannot hear the keys")? {
            let event = event::read().context("cannot hear the keys")?;
            if obey(&mut screen, &event).is_break() {
                return Ok(());
            }
        }
        match looks.try_recv() {
            Ok(look) => note(&mut screen, look),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => bail!("nobody looks at the server any longer"),
        }
    }
}

/// Shows what was seen; what was seen before stays where nothing was.
fn note(screen: &mut Screen, look: Look) {
    match look {
        Ok(glimpse) => {
            screen.glimpse = glimpse;
            screen.notice = None;
        }
        Err(error) => screen.notice = Some(format!("{error}; trying again")),
    }
}

fn obey(screen: &mut Screen, event: &Event) -> ControlFlow<()> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
        return ControlFlow::Continue(());
    };
    match code {
        KeyCode::Char('q') | KeyCode::Esc => return ControlFlow::Break(()),
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => {
            return ControlFlow::Break(());
        }
        KeyCode::Down => screen.scroll(1),
        KeyCode::Up => screen.scroll(-1),
        KeyCode::PageDown => screen.scroll(PAGE),
        KeyCode::PageUp => screen.scroll(-PAGE),
        _ => {}
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(code: KeyCode, modifiers: KeyModifiers) -> bool {
        let mut screen = Screen::new(Glimpse::default());
        obey(&mut screen, &Event::Key(KeyEvent::new(code, modifiers))).is_break()
    }

    #[test]
    fn q_escape_and_control_c_leave_and_no_other_key() {
        assert!(pressed(KeyCode::Char('q'), KeyModifiers::NONE));
        assert!(pressed(KeyCode::Esc, KeyModifiers::NONE));
        assert!(pressed(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!pressed(KeyCode::Char('c'), KeyModifiers::NONE));
        assert!(!pressed(KeyCode::Down, KeyModifiers::NONE));
    }

    #[test]
    fn failed_look_keeps_what_was_seen_until_the_next_that_succeeds() {
        let mut screen = Screen::new(Glimpse { tenants: 3, ..Glimpse::default() });
        note(&mut screen, Err("lost the connection".into()));
        assert_eq!(screen.glimpse.tenants, 3);
        assert_eq!(screen.notice.as_deref(), Some("lost the connection; trying again"));
        note(&mut screen, Ok(Glimpse::default()));
        assert_eq!((screen.glimpse.tenants, screen.notice), (0, None));
    }
}

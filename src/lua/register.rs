//! `redis.register_function`: what a library says of its functions while it is loaded.

use mlua::{Function, MultiValue, Table, Value};

use super::failure::Thrown;
use super::shebang::ScriptFlags;
use super::words::as_text;

/// What is wrong with the name of a library, or of a function.
pub(super) const WRONG_NAME: &str = "Library names can only contain letters, numbers, or \
    underscores(_) and must be at least one character long";

pub(super) fn is_name(name: &[u8]) -> bool {
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !name.is_empty() && name.iter().all(legal)
}

/// One function, as it was registered.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    pub(super) name: Vec<u8>,
    pub(super) description: Option<Vec<u8>>,
    pub(super) flags: ScriptFlags,
    pub(super) function: Function,
}

impl Registered {
    /// From `(name, function)`, or from a table of named arguments.
    pub(super) fn read(args: &MultiValue) -> Result<Self, Thrown> {
        let read = match args.len() {
            1 => match &args[0] {
                Value::Table(named) => Self::named(named),
                _ => Err("calling redis.register_function with a single argument is only \
                          applicable to Lua table (representing named arguments)."),
            },
            2 => Self::placed(&args[0], &args[1]),
            _ => Err("wrong number of arguments to redis.register_function"),
        };
        match read {
            Ok(function) if is_name(&function.name) => Ok(function),
            Ok(_) => Err(Thrown::misuse(WRONG_NAME)),
            Err(text) => Err(Thrown::misuse(text)),
        }
    }

    fn placed(name: &Value, function: &Value) -> Result<Self, &'static str> {
        let Some(name) = as_text(name) else {
            return Err("first argument to redis.register_function must be a string");
        };
        let Value::Function(function) = function else {
            return Err("second argument to redis.register_function must be a function");
        };
        let flags = ScriptFlags::default();
        Ok(Self { name, description: None, flags, function: function.clone() })
    }

    fn named(table: &Table) -> Result<Self, &'static str> {
        let (mut name, mut description, mut function) = (None, None, None);
        let mut flags = ScriptFlags::default();
        for (key, value) in table.pairs::<Value, Value>().flatten() {
            let text = as_text(&value);
            match as_text(&key).as_deref() {
                Some(b"function_name") => {
                    let wrong = "function_name argument given to redis.register_function must be \
                                 a string";
                    name = Some(text.ok_or(wrong)?);
                }
                Some(b"description") => {
                    let wrong = "description argument given to redis.register_function must be a \
                                 string";
                    description = Some(text.ok_or(wrong)?);
                }
                Some(b"callback") => match value {
                    Value::Function(given) => function = Some(given),
                    _ => {
                        return Err(
                            "callback argument given to redis.register_function must be a \
                                    function",
                        );
                    }
                },
                Some(b"flags") => match value {
                    Value::Table(list) => flags = read_flags(&list)?,
                    _ => {
                        return Err("flags argument to redis.register_function must be a table \
                                    representing function flags");
                    }
                },
                Some(_) => return Err("unknown argument given to redis.register_function"),
                None => {
                    return Err("named argument key given to redis.register_function is not a \
                                string");
                }
            }
        }
        let name = name.ok_or("redis.register_function must get a function name argument")?;
        let function = function.ok_or("redis.register_function must get a callback argument")?;
        Ok(Self { name, description, flags, function })
    }
}

fn read_flags(list: &Table) -> Result<ScriptFlags, &'static str> {
    let mut flags = ScriptFlags::default();
    for value in list.sequence_values::<Value>().flatten() {
        let flag = as_text(&value).and_then(|name| ScriptFlags::named(&name));
        flags = flags.and(flag.ok_or("unknown flag given")?);
    }
    Ok(flags)
}

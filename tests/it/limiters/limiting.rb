# What each program here proves of a library: so many pass, the next is refused, it opens again.
#
# Nothing sleeps through a window: it is asked again and again until it opens, and not for ever.

# Seconds. No window here is longer than a third of the patience.
PATIENCE = 10
PAUSE = 0.02
# A library may round the moment to whole milliseconds, at both ends.
ROUNDING = 0.005

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

# The block tells whether a key passes: `passes` times, then not before `closed` seconds.
#
# Where a window may have ended between two questions, a second key is tried: because windows are
# `aligned` to the clock, or because the machine was too busy.
def limits(passes, closed: 0, aligned: false)
  expected = [true] * passes + [false]
  begun = nil
  key = %w[first second].find do |tried|
    begun = now
    answers = expected.map { yield tried }
    answers == expected or aligned or now - begun > closed or raise answers.inspect
    answers == expected
  end
  raise "#{passes} should pass, then none" unless key

  until yield key
    raise "it never opens" if now - begun > PATIENCE

    sleep PAUSE
  end
  took = now - begun
  raise "it opened after #{took} s, not #{closed} s" if took < closed - ROUNDING
end

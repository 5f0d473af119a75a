# Perl's Redis over a socket: a counter in a transaction, a script, and a list that is waited for.
use strict;
use warnings;
use Redis;
use Time::HiRes qw(sleep time);

my $redis = Redis->new(server => "127.0.0.1:$ARGV[0]", encoding => undef);
$redis->select(10);

# Three pass, then none before a second is over; and it is asked until it opens.
sub limits {
    my ($ask) = @_;
    my $begun = time;
    my $answers = join '', map { $ask->() ? 1 : 0 } 1 .. 4;
    $answers eq '1110' or die "three should pass, then none: $answers";
    until ($ask->()) {
        time - $begun < 10 or die 'it never opens';
        sleep 0.02;
    }
    time - $begun > 0.995 or die 'it opened too early';
}

limits(sub {
    $redis->multi;
    $redis->incr('multi');
    $redis->expire('multi', 1, 'NX');
    my ($count) = $redis->exec;
    $count <= 3;
});
my $script = q{
    local log, now, window, limit = KEYS[1], redis.call('TIME'), 1e6, tonumber(ARGV[1])
    now = now[1] * 1e6 + now[2]
    redis.call('ZREMRANGEBYSCORE', log, '-inf', now - window)
    if redis.call('ZCARD', log) >= limit then return 0 end
    redis.call('ZADD', log, now, ARGV[2])
    redis.call('PEXPIRE', log, window / 1e3)
    return 1
};
my $sha = $redis->script_load($script);
my $request = 0;
limits(sub { $redis->evalsha($sha, 1, 'log', 3, $request++) });
$redis->lpush('places', 1);
my (undef, $place) = $redis->blpop('places', 1);
$place == 1 or die 'the place was not handed out';
$redis->quit;
print "done\n";

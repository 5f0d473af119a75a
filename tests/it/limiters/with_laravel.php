<?php
// Laravel's throttle and funnel, over the redis extension and over predis.

require 'Illuminate/Redis/autoload.php';
require 'Illuminate/Support/autoload.php';
require 'Predis/autoload.php';
require __DIR__ . '/limiting.php';

use Illuminate\Redis\RedisManager;

foreach (['phpredis', 'predis'] as $client) {
    $settings = ['host' => '127.0.0.1', 'port' => (int) $argv[1], 'database' => 8];
    $redis = (new RedisManager(null, $client, ['default' => $settings]))->connection();
    $passes = fn ($builder) => $builder->block(0)->then(fn () => true, fn () => false);

    limits(
        fn ($key) => $passes($redis->throttle("$client:$key")->allow(3)->every(1)),
        3,
        aligned: true
    );

    // Two places, one of them held while others ask.
    $funnel = fn () => $redis->funnel("$client:places")->limit(2)->releaseAfter(60);
    $inside = $funnel()->block(0)->then(
        fn () => $funnel()->block(0)->then(fn () => $passes($funnel()), fn () => 'one place'),
        fn () => 'no place'
    );
    expect($inside === false, 'three in two places: ' . json_encode($inside));
    expect($passes($funnel()), 'the places were not given back');

    $counts = $redis->transaction(function ($transaction) use ($client) {
        $transaction->incr("$client:count");
        $transaction->expire("$client:count", 60);
    });
    expect((int) $counts[0] === 1, json_encode($counts));
    expect($redis->ttl("$client:count") === 60, 'no deadline');
}
echo "done\n";

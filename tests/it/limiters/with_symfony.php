<?php
// Symfony's rate limiter, which keeps its state in a cache: its three policies.

require 'Symfony/Component/RateLimiter/autoload.php';
require 'Symfony/Component/Cache/autoload.php';
require 'Symfony/Component/Lock/autoload.php';
require __DIR__ . '/limiting.php';

use Symfony\Component\Cache\Adapter\RedisAdapter;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;
use Symfony\Component\RateLimiter\RateLimiterFactory;
use Symfony\Component\RateLimiter\Storage\CacheStorage;

$redis = new Redis();
$redis->connect('127.0.0.1', (int) $argv[1]);
$redis->select(9);
$storage = new CacheStorage(new RedisAdapter($redis));
$locks = new LockFactory(new RedisStore($redis));
foreach (['fixed_window', 'sliding_window', 'token_bucket'] as $policy) {
    $settings = ['id' => $policy, 'policy' => $policy, 'limit' => 3, 'interval' => '1 second'];
    if ($policy === 'token_bucket') {
        $settings['rate'] = ['interval' => '1 second', 'amount' => 3];
    }
    $factory = new RateLimiterFactory($settings, $storage, $locks);
    limits(fn ($key) => $factory->create($key)->consume()->isAccepted(), 3, aligned: true);
    $left = $factory->create('other')->consume(2);
    expect($left->isAccepted() && $left->getRemainingTokens() === 1, 'two of three are spent');
    $factory->create('other')->reset();
}
$lock = $locks->createLock('lock', 60);
expect($lock->acquire(), 'nobody holds it');
expect(!$locks->createLock('lock', 60)->acquire(), 'it is held');
$lock->release();
echo "done\n";

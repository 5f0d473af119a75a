# rack-attack over the redis gem: an application answers 429, and says when to come back.
require "rack"
require "rack/attack"
require "redis"
require_relative "limiting"

redis = Redis.new(port: Integer(ARGV[0]), db: 7)
Rack::Attack.cache.store = redis
Rack::Attack.throttled_response_retry_after_header = true
Rack::Attack.throttle("users", limit: 3, period: 2) { |request| request.params["user"] }
Rack::Attack.blocklist("banned") do |request|
  Rack::Attack::Fail2Ban.filter(request.params["user"], maxretry: 2, findtime: 60, bantime: 60) do
    request.path == "/login"
  end
end
hello = ->(_) { [200, {}, ["hello"]] }
app = Rack::MockRequest.new(Rack::Attack.new(hello))

limits(3, aligned: true) do |user|
  response = app.get("/?user=#{user}")
  case response.status
  when 429 then (0..2).cover?(Integer(response["Retry-After"])) or raise response.inspect
  when 200 then nil
  else raise response.inspect
  end
  response.status == 200
end
statuses = %w[/ /login / /login /].map { |path| app.get("#{path}?user=guesser").status }
raise statuses.inspect unless statuses == [200, 403, 200, 403, 403]

Rack::Attack.reset!
raise redis.keys.inspect unless redis.dbsize.zero?

# The same gem by hand: a script, a transaction, a pipeline.
script = "local n = redis.call('INCR', KEYS[1]) " \
         "if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return n <= tonumber(ARGV[2])"
sha = redis.script(:load, script)
limits(3, closed: 1) { |key| redis.evalsha(sha, keys: ["lua:#{key}"], argv: [1000, 3]) == 1 }
limits(3, closed: 1) do |key|
  count, = redis.multi do |transaction|
    transaction.incr("multi:#{key}")
    transaction.call("EXPIRE", "multi:#{key}", 1, "NX")
  end
  count <= 3
end
puts "done"

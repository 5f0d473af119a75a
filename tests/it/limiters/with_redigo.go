// redigo, which older Go limiters speak through: its pipeline, its script, its messages.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"
)

const patience = 10 * time.Second

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Three pass, then none before a second is over; and it is asked until it opens.
func limits(ask func() bool) {
	begun := time.Now()
	for n := 0; n < 4; n++ {
		if passes := ask(); passes != (n < 3) {
			panic(fmt.Sprint("three should pass, then none: number ", n, " ", passes))
		}
	}
	for !ask() {
		if time.Since(begun) > patience {
			panic("it never opens")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if time.Since(begun) < 995*time.Millisecond {
		panic("it opened too early")
	}
}

func main() {
	client, err := redis.Dial("tcp", "127.0.0.1:"+os.Args[1],
		redis.DialDatabase(11), redis.DialClientName("redigo"))
	check(err)
	limits(func() bool {
		check(client.Send("INCR", "count"))
		check(client.Send("EXPIRE", "count", 1, "NX"))
		check(client.Flush())
		count, err := redis.Int(client.Receive())
		check(err)
		_, err = client.Receive()
		check(err)
		return count <= 3
	})
	// Its state is a hash of nanoseconds, too many for a double to hold exactly.
	script := redis.NewScript(1, `
		local state = redis.call('HMGET', KEYS[1], 'at', 'left')
		local now, left = tonumber(ARGV[1]), tonumber(state[2] or 3)
		if state[1] and now - tonumber(state[1]) >= 1e9 then left = 3 end
		if left < 1 then return false end
		redis.call('HSET', KEYS[1], 'at', left == 3 and ARGV[1] or state[1], 'left', left - 1)
		redis.call('EXPIRE', KEYS[1], 60)
		return true`)
	limits(func() bool {
		passes, err := redis.Bool(script.Do(client, "bucket", time.Now().UnixNano()))
		if err == redis.ErrNil {
			return false
		}
		check(err)
		return passes
	})

	listener, err := redis.Dial("tcp", "127.0.0.1:"+os.Args[1])
	check(err)
	messages := redis.PubSubConn{Conn: listener}
	check(messages.Subscribe("channel"))
	_, subscribed := messages.ReceiveWithTimeout(patience).(redis.Subscription)
	_, err = client.Do("PUBLISH", "channel", "hello")
	check(err)
	message, heard := messages.ReceiveWithTimeout(patience).(redis.Message)
	if !subscribed || !heard || string(message.Data) != "hello" {
		panic("the message was not heard")
	}
	fmt.Println("done")
}

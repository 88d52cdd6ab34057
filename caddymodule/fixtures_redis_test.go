package caddymodule_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/tidwall/gjson"
)

// brief is the time to live of what isn't worth keeping: rates.
const brief = 5 * time.Minute

// dumpRedis writes down all that a server holds, as commands that make it, one
// a line. Times to live are told as what is left of them.
func dumpRedis(t *testing.T, address string) []byte {
	c := goredis.NewClient(&goredis.Options{Addr: address})
	defer c.Close()
	ctx := t.Context()
	keys, err := c.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, key := range keys {
		ttl := c.PTTL(ctx, key).Val()
		if ttl > 0 && ttl < brief {
			continue
		}
		command := []string{}
		switch kind := c.Type(ctx, key).Val(); kind {
		case "string":
			command = append(command, "SET", key, c.Get(ctx, key).Val())
		case "hash":
			command = append(command, "HSET", key)
			all := c.HGetAll(ctx, key).Val()
			for _, field := range slices.Sorted(maps.Keys(all)) {
				command = append(command, field, all[field])
			}
		case "list":
			command = append(append(command, "RPUSH", key), c.LRange(ctx, key, 0, -1).Val()...)
		case "set":
			command = append(append(command, "SADD", key), c.SMembers(ctx, key).Val()...)
		case "zset":
			command = append(command, "ZADD", key)
			for _, z := range c.ZRangeWithScores(ctx, key, 0, -1).Val() {
				command = append(command, fmt.Sprintf("%.17g", z.Score), z.Member.(string))
			}
		default:
			t.Fatalf("%s is a %s, which can't be written down", key, kind)
		}
		b.WriteString(line(command))
		if ttl > 0 {
			b.WriteString(line([]string{"PEXPIRE", key, fmt.Sprint(ttl.Milliseconds())}))
		}
	}
	return []byte(b.String())
}

// line writes a command as JSON: of bytes that are no UTF-8, as Latin-1.
func line(command []string) string {
	for i, word := range command {
		var latin []rune
		for _, b := range []byte(word) {
			latin = append(latin, rune(b))
		}
		command[i] = string(latin)
	}
	b, _ := json.Marshal(command)
	return string(b) + "\n"
}

// month is where the name of a key tells the month whose usage it holds.
var month = regexp.MustCompile(`^(.*:usage:.*:)\d{4}-\d\d$`)

// loadRedis runs the commands. What was used in the month of the dump is used
// in this one.
func loadRedis(t *testing.T, address, path string) {
	c := goredis.NewClient(&goredis.Options{Addr: address})
	defer c.Close()
	in := bufio.NewScanner(bytes.NewReader(fileAt(t, path)))
	in.Buffer(nil, 1<<20)
	n := 0
	for ; in.Scan(); n++ {
		var command []any
		for _, word := range gjson.ParseBytes(in.Bytes()).Array() {
			var b []byte
			for _, r := range word.Str {
				b = append(b, byte(r))
			}
			command = append(command, month.ReplaceAllString(string(b), "${1}"+time.Now().UTC().Format("2006-01")))
		}
		if err := c.Do(t.Context(), command...).Err(); err != nil {
			t.Fatalf("%s:%d: %v", path, n+1, err)
		}
	}
	if err := in.Err(); err != nil || n == 0 {
		t.Fatalf("%d commands: %v", n, err)
	}
}

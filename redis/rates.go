package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// rateScript counts a request of a tenant, if fewer than the limit were counted
// in the window. The times are microseconds of the server's clock, one for all
// proxies; where that is set back, the latest time seen stands, so that no window
// holds more than the limit. It also says whether the tenant has processed files.
//
// KEYS: rate, live. ARGV: limit, window, name of the request, time or 0.
//
// A request sent again because its reply was lost has the same name and is not
// counted twice.
var rateScript = newScript(`
local limit, window, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
if now == 0 then
	local t = redis.call('TIME')
	now = t[1] * 1000000 + t[2]
end
local last = tonumber(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2])
if last and last > now then now = last end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - window))
local n = redis.call('ZCARD', KEYS[1])
local allowed = redis.call('ZSCORE', KEYS[1], ARGV[3])
if not allowed and n < limit then
	redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[3])
	redis.call('PEXPIRE', KEYS[1], window / 1000 * 2)
	allowed, last, n = true, now, n + 1
end
local reset, retry = 0, 0
if n > 0 then reset = last + window - now end
if limit <= 0 then
	retry = window
elseif n >= limit then
	local i = n - limit
	retry = redis.call('ZRANGE', KEYS[1], i, i, 'WITHSCORES')[2] + window - now
end
return {allowed and 1 or 0, n, reset, retry, redis.call('EXISTS', KEYS[2])}
`)

// Take counts one request of the tenant.
func (s *Store) Take(ctx context.Context, tenant string, limit int) (store.Rate, error) {
	if err := s.begin(ctx); err != nil {
		return store.Rate{}, err
	}
	defer s.end()
	c := s.rateCall(tenant, limit)
	reply := s.run(ctx, c.script, c.keys, c.args...)
	rate, _, err := readRate(reply, limit)
	return rate, failure(ctx, err)
}

func (s *Store) rateCall(tenant string, limit int) *call {
	tag := ":{" + escape(tenant) + "}"
	return &call{
		script: rateScript,
		keys:   []string{s.layout.tagged(rateKey, tag), s.layout.tagged(liveKey, tag)},
		args:   []any{limit, store.RateWindow.Microseconds(), s.unique(), s.micros()},
	}
}

// micros is the time for scripts: 0, which means the server's, unless
// Options.Now tells it.
func (s *Store) micros() int64 {
	if s.opts.Now == nil {
		return 0
	}
	return s.now().UnixMicro()
}

// readRate reads the reply of rateScript.
func readRate(cmd *goredis.Cmd, limit int) (rate store.Rate, files bool, err error) {
	n, err := cmd.Int64Slice()
	if err != nil {
		return store.Rate{}, false, err
	}
	if len(n) != 5 {
		return store.Rate{}, false, fmt.Errorf("the script for rates answered %d values", len(n))
	}
	return store.Rate{
		Allowed:    n[0] == 1,
		Limit:      max(limit, 0),
		Remaining:  max(limit-int(n[1]), 0),
		Reset:      time.Duration(n[2]) * time.Microsecond,
		RetryAfter: time.Duration(n[3]) * time.Microsecond,
	}, n[4] == 1, nil
}

// errCorrupt says that something stored can't be read back.
var errCorrupt = errors.New("stored data is corrupt")

var _ store.Limiter = (*Store)(nil)

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
// holds more than the limit. It also says whether the tenant has processed files,
// and what it has used where it is asked.
//
// KEYS: rate, live, and maybe usage. ARGV: limit, window, name of the request, time or 0.
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
local used = KEYS[3] and redis.call('GET', KEYS[3]) or '0'
return {allowed and 1 or 0, n, reset, retry, redis.call('EXISTS', KEYS[2]), tonumber(used)}
`)

// Take counts one request of the tenant.
func (s *Store) Take(ctx context.Context, tenant string, limit int) (store.Rate, error) {
	if err := s.begin(ctx); err != nil {
		return store.Rate{}, err
	}
	defer s.end()
	c := s.rateCall(store.Scope{Tenant: tenant}, limit, 0)
	reply := s.run(ctx, c.script, c.keys, c.args...)
	facts, err := readRate(reply, limit)
	return facts.rate, failure(ctx, err)
}

// rateCall asks for the usage of a month too, unless that is 0.
func (s *Store) rateCall(scope store.Scope, limit int, month store.Month) *call {
	keys := []string{s.layout.tenant(rateKey, scope), s.layout.tenant(liveKey, scope)}
	if month != 0 {
		keys = append(keys, s.layout.usage(scope, month))
	}
	return &call{
		script: rateScript,
		keys:   keys,
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

// tenantFacts is what rateScript answers.
type tenantFacts struct {
	rate  store.Rate
	files bool
	used  int64
}

func readRate(cmd *goredis.Cmd, limit int) (tenantFacts, error) {
	n, err := cmd.Int64Slice()
	if err != nil {
		return tenantFacts{}, err
	}
	if len(n) != 6 {
		return tenantFacts{}, fmt.Errorf("the script for rates answered %d values", len(n))
	}
	return tenantFacts{
		rate: store.Rate{
			Allowed:    n[0] == 1,
			Limit:      max(limit, 0),
			Remaining:  max(limit-int(n[1]), 0),
			Reset:      time.Duration(n[2]) * time.Microsecond,
			RetryAfter: time.Duration(n[3]) * time.Microsecond,
		},
		files: n[4] == 1,
		used:  n[5],
	}, nil
}

// errCorrupt says that something stored can't be read back.
var errCorrupt = errors.New("stored data is corrupt")

var _ store.Limiter = (*Store)(nil)

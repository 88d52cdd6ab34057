package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

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

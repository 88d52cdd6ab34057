package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// DefaultPrefix is that of Options.
const DefaultPrefix = "backstory:"

const (
	defaultDialTimeout   = time.Second
	defaultTimeout       = time.Second
	defaultSearchTimeout = time.Second
	defaultWaitTimeout   = time.Second
)

// Validate checks the options, as Open does, without connecting.
func (o Options) Validate() error { return o.complete() }

// complete sets the defaults and checks the rest.
func (o *Options) complete() error {
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	o.DialTimeout = cmp.Or(o.DialTimeout, defaultDialTimeout)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.SearchTimeout = cmp.Or(o.SearchTimeout, defaultSearchTimeout)
	o.PoolSize = cmp.Or(o.PoolSize, 10*runtime.GOMAXPROCS(0))
	o.WaitTimeout = cmp.Or(o.WaitTimeout, defaultWaitTimeout)
	o.Algorithm = cmp.Or(o.Algorithm, HNSW)
	switch {
	case strings.ContainsAny(o.Prefix, "{}"):
		return errors.New("redis: the prefix has a brace in it, which would put all keys into one slot; choose another")
	case o.Algorithm != HNSW && o.Algorithm != Flat:
		return fmt.Errorf("redis: the index algorithm is %q; it must be %s or %s", o.Algorithm, HNSW, Flat)
	case o.DialTimeout < 0, o.Timeout < 0, o.SearchTimeout < time.Millisecond, o.WaitTimeout < time.Millisecond, o.PoolSize < 0, o.WaitReplicas < 0, o.Dimensions < 0:
		return errors.New("redis: a timeout, size or number of replicas is negative, or a timeout less than a millisecond")
	}
	return nil
}

// Open connects to the servers that the URL names, see ParseURL, and readies the
// search index. An error says what is wrong in one line.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	target, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	s := &Store{layout: layout{o.Prefix}, opts: o, now: o.Now, nonce: rand.Text()[:12]}
	if s.now == nil {
		s.now = time.Now
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if target.TLS != nil && o.TLS != nil {
		target.TLS = o.TLS
	}
	w := newWatch(s.ctx, target.TLS, o)
	s.client = connect(target, o, w, o.Timeout)
	s.searches = connect(target, o, w, o.SearchTimeout+o.Timeout)
	// Half of them wait at most, so that nobody waits for a connection.
	s.replicas = newReplicas(max(o.PoolSize/2, 1))
	s.waits = connect(target, o, w, o.WaitTimeout+o.Timeout)
	if err := s.begun(ctx, target); err != nil {
		s.stop()
		_ = s.closeClients() // the error is the one above
		return nil, err
	}
	return s, nil
}

func (s *Store) closeClients() error {
	return errors.Join(s.client.Close(), s.searches.Close(), s.waits.Close())
}

// connect makes a client whose servers may be silent for as long as timeout says;
// it connects when it is first used.
func connect(t Target, o Options, w *watch, timeout time.Duration) goredis.UniversalClient {
	client := goredis.NewUniversalClient(&goredis.UniversalOptions{
		Addrs:            t.Addrs,
		IsClusterMode:    t.Cluster,
		MasterName:       t.Master,
		DB:               t.Database,
		Username:         t.Username,
		Password:         t.Password,
		SentinelUsername: t.SentinelUsername,
		SentinelPassword: t.SentinelPassword,
		TLSConfig:        t.TLS,
		Dialer:           w.dial,
		// redisearch-go understands the replies of this one alone.
		Protocol:              2,
		DialTimeout:           o.DialTimeout,
		DialerRetries:         1, // commands are tried again, with pauses
		ReadTimeout:           timeout,
		WriteTimeout:          timeout,
		PoolTimeout:           timeout,
		ContextTimeoutEnabled: true,
		PoolSize:              o.PoolSize,
		PipelinePoolSize:      -1, // pipelines are all that there is
		// These speak up on every new connection, of what few servers know.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	if cluster, ok := client.(*goredis.ClusterClient); ok {
		reloadOnSilence(cluster)
	}
	return client
}

// writable finds out whether the servers take writes: a replica answers a ping,
// too, and so does one node of a Cluster, which has some of the keys only.
func (s *Store) writable(ctx context.Context) error {
	_, err := s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i := range 8 { // in slots all over
			p.Del(ctx, fmt.Sprintf("%sready:%d", s.opts.Prefix, i)) // there is none
		}
		return nil
	})
	return err
}

package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// DefaultPrefix is that of Options.
const DefaultPrefix = "backstory:"

const (
	defaultDialTimeout   = 5 * time.Second
	defaultTimeout       = 3 * time.Second
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
	o.WaitTimeout = cmp.Or(o.WaitTimeout, defaultWaitTimeout)
	o.Algorithm = cmp.Or(o.Algorithm, HNSW)
	switch {
	case strings.ContainsAny(o.Prefix, "{}"):
		return errors.New("redis: the prefix has a brace in it, which would put all keys into one slot; choose another")
	case o.Algorithm != HNSW && o.Algorithm != Flat:
		return fmt.Errorf("redis: the index algorithm is %q; it must be %s or %s", o.Algorithm, HNSW, Flat)
	case o.DialTimeout < 0, o.Timeout < 0, o.SearchTimeout < time.Millisecond, o.WaitTimeout < time.Millisecond, o.PoolSize < 0, o.WaitReplicas < 0, o.Dimensions < 0:
		return errors.New("redis: a timeout, size or number of replicas is negative, or a timeout less than a millisecond")
	case o.WaitReplicas > 0 && o.WaitTimeout >= o.Timeout:
		return fmt.Errorf("redis: waiting for replicas (%v) must end before the connection's timeout (%v) does", o.WaitTimeout, o.Timeout)
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
	s := &Store{client: connect(target, o), layout: layout{o.Prefix}, opts: o, now: o.Now, nonce: rand.Text()[:12]}
	if s.now == nil {
		s.now = time.Now
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.ready(ctx); err != nil {
		s.stop()
		_ = s.client.Close() // the error is the one above
		return nil, fmt.Errorf("redis: open %s: %w", strings.Join(target.Addrs, ","), explainOpen(target, err))
	}
	s.background(s.sweep)
	return s, nil
}

// connect makes the client; it connects when it is first used.
func connect(t Target, o Options) goredis.UniversalClient {
	tlsConfig := t.TLS
	if tlsConfig != nil && o.TLS != nil {
		tlsConfig = o.TLS
	}
	client := goredis.NewUniversalClient(&goredis.UniversalOptions{
		Addrs:            t.Addrs,
		IsClusterMode:    t.Cluster,
		MasterName:       t.Master,
		DB:               t.Database,
		Username:         t.Username,
		Password:         t.Password,
		SentinelUsername: t.SentinelUsername,
		SentinelPassword: t.SentinelPassword,
		TLSConfig:        tlsConfig,
		// redisearch-go understands the replies of this one alone.
		Protocol:              2,
		DialTimeout:           o.DialTimeout,
		DialerRetries:         1, // commands are tried again, with pauses
		ReadTimeout:           o.Timeout,
		WriteTimeout:          o.Timeout,
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

// ready finds out whether the servers do what is asked of them later.
func (s *Store) ready(ctx context.Context) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return err
	}
	if err := s.writable(ctx); err != nil {
		return err
	}
	if err := s.loadScripts(ctx); err != nil {
		return err
	}
	if s.opts.NoFiles || s.opts.unindexed {
		return nil
	}
	if err := s.createText(ctx); err != nil {
		return err
	}
	if s.opts.Model == "" || s.opts.Dimensions == 0 {
		return nil
	}
	return s.createVector(ctx, s.opts.Model, s.opts.Dimensions)
}

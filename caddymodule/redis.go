package caddymodule

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/redis"
	"github.com/backstory-proxy/backstory/store"
)

func init() {
	caddy.RegisterModule(new(Redis))
}

// Redis is the store for many proxies on one memory: Redis 8 or Redis Stack,
// alone, with Sentinel or as a Cluster.
type Redis struct {
	// Where it is: redis://[user:password@]host[:port][/database],
	// redis+sentinel://host:port,…/primary, redis+cluster://host:port,…; with
	// rediss in place of redis for TLS. Best as a placeholder such as
	// {env.REDIS_URL}, since it may hold a password.
	URL string `json:"url"`
	// What every key begins with. Default: "backstory:".
	Prefix string `json:"prefix,omitempty"`
	// How long a connection may take to be made. Default: 1s.
	DialTimeout caddy.Duration `json:"dial_timeout,omitempty"`
	// How long Redis may be silent that was asked something. Then what needs
	// it fails at once, until it answers again. Default: 1s.
	Timeout caddy.Duration `json:"timeout,omitempty"`
	// How long a search may keep the server busy, by its own clock. Default: 1s.
	SearchTimeout caddy.Duration `json:"search_timeout,omitempty"`
	// How many connections there may be to each server; as many for searches,
	// and again for waiting for replicas. Default: 10 per core.
	PoolSize int `json:"pool_size,omitempty"`
	// How many replicas must have an exchange before its reply ends; without
	// any, a failover may lose what was acknowledged just before. Default: 0.
	WaitReplicas int `json:"wait_replicas,omitempty"`
	// How vectors are indexed: "hnsw" (default) or "flat".
	Index string `json:"index,omitempty"`
	// Whether to do without files, and so without the search module.
	FilesOff bool `json:"files_off,omitempty"`

	url string // with its placeholders replaced
}

// CaddyModule returns the Caddy module information.
func (*Redis) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "backstory.stores.redis", New: func() caddy.Module { return new(Redis) }}
}

// Provision reads the URL.
func (r *Redis) Provision(caddy.Context) error {
	r.url = caddy.NewReplacer().ReplaceAll(r.URL, "")
	return nil
}

// Validate checks the configuration. It connects to nothing.
func (r *Redis) Validate() error {
	if r.url == "" {
		return fmt.Errorf("redis: the URL is empty")
	}
	target, err := redis.ParseURL(r.url)
	if err != nil {
		return err
	}
	if target.Database > 0 && !r.FilesOff {
		return fmt.Errorf("redis: file search works in database 0 only; take the %d out of the URL, or turn files off", target.Database)
	}
	switch r.algorithm() {
	case "", redis.HNSW, redis.Flat:
	default:
		return fmt.Errorf("redis: index must be hnsw or flat, not %q", r.Index)
	}
	if r.PoolSize < 0 || r.WaitReplicas < 0 || r.DialTimeout < 0 || r.Timeout < 0 || r.SearchTimeout < 0 {
		return fmt.Errorf("redis: sizes and timeouts must not be negative")
	}
	return r.options().Validate()
}

func (r *Redis) algorithm() redis.Algorithm { return redis.Algorithm(strings.ToUpper(r.Index)) }

// Location is a digest of all that tells one store from another.
func (r *Redis) Location() string {
	config, err := json.Marshal(r)
	if err != nil { // can't be: it was unmarshalled from such
		panic(err)
	}
	sum := sha256.Sum256(append(config, r.url...))
	return "redis:" + hex.EncodeToString(sum[:8])
}

// Data names the servers, the database and the prefix.
func (r *Redis) Data() string {
	target, err := redis.ParseURL(r.url)
	if err != nil { // Validate has read it, but a certificate may be gone since
		return r.Location()
	}
	slices.Sort(target.Addrs)
	return fmt.Sprintf("redis:%q %q %d %q", target.Addrs, target.Master, target.Database, cmp.Or(r.Prefix, redis.DefaultPrefix))
}

// Open connects, and makes the search index if need be.
func (r *Redis) Open(ctx context.Context, embedder embed.Embedder) (store.Store, error) {
	o := r.options()
	o.Model, o.Dimensions = embedder.Model(), embedder.Dimensions()
	// A reload that names servers which can't be reached is a mistake, and what
	// runs goes on; at the start they may come later.
	o.Patient = running() == nil
	o.Notify = tellOfRedis
	return redis.Open(ctx, r.url, o)
}

// tellOfRedis writes to the process's own log: the store outlives configurations.
func tellOfRedis(e redis.Event) {
	log := caddy.Log().Named("backstory.redis")
	server := zap.String("server", e.Server)
	switch e.What {
	case redis.Waiting:
		log.Error("Redis can't be used yet; requests are answered with 503 until it can", zap.Error(e.Err))
	case redis.Reached:
		log.Info("Redis can be used now")
	case redis.Hangs:
		log.Error("Redis has stopped answering; requests are answered with 503 until it does", server)
	case redis.Answers:
		log.Info("Redis answers again", server)
	case redis.SearchBlocks:
		log.Warn("Redis answers nobody else while it searches files: set its option search-workers to the number of its cores")
	}
}

// options are those of the configuration.
func (r *Redis) options() redis.Options {
	return redis.Options{
		Prefix:        r.Prefix,
		DialTimeout:   time.Duration(r.DialTimeout),
		Timeout:       time.Duration(r.Timeout),
		SearchTimeout: time.Duration(r.SearchTimeout),
		PoolSize:      r.PoolSize,
		WaitReplicas:  r.WaitReplicas,
		Algorithm:     r.algorithm(),
		NoFiles:       r.FilesOff,
	}
}

// UnmarshalCaddyfile reads
//
//	redis <url> {
//		prefix <text>
//		dial_timeout <duration>
//		timeout <duration>
//		search_timeout <duration>
//		pool_size <n>
//		wait_replicas <n>
//		index hnsw|flat
//		files off
//	}
func (r *Redis) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the kind
	if !d.AllArgs(&r.URL) {
		return d.Err("expected: store redis <url>")
	}
	seen := map[string]bool{}
	for d.NextBlock(0) {
		option := d.Val()
		if err := once(d, seen, option); err != nil {
			return err
		}
		var arg string
		if !d.AllArgs(&arg) {
			return d.ArgErr()
		}
		if err := r.parseOption(d, option, arg); err != nil {
			return err
		}
	}
	return nil
}

func (r *Redis) parseOption(d *caddyfile.Dispenser, option, arg string) (err error) {
	switch option {
	case "prefix":
		r.Prefix = arg
	case "index":
		r.Index = arg
	case "dial_timeout":
		err = parseDuration(d, arg, &r.DialTimeout)
	case "timeout":
		err = parseDuration(d, arg, &r.Timeout)
	case "search_timeout":
		err = parseDuration(d, arg, &r.SearchTimeout)
	case "pool_size":
		r.PoolSize, err = parseCount(d, arg)
	case "wait_replicas":
		if r.WaitReplicas, err = strconv.Atoi(arg); err != nil || r.WaitReplicas < 0 {
			return d.Errf("expected a number, not %q", arg)
		}
	case "files":
		if arg != "off" {
			return d.Errf("expected: files off")
		}
		r.FilesOff = true
	default:
		return d.Errf("unrecognized option %q", option)
	}
	return err
}

func parseDuration(d *caddyfile.Dispenser, arg string, to *caddy.Duration) error {
	n, err := caddy.ParseDuration(arg)
	if err != nil || n <= 0 {
		return d.Errf("expected a duration such as 500ms, not %q", arg)
	}
	*to = caddy.Duration(n)
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Redis)(nil)
	_ caddy.Validator       = (*Redis)(nil)
	_ caddyfile.Unmarshaler = (*Redis)(nil)
	_ StoreOpener           = (*Redis)(nil)
	_ dataNamer             = (*Redis)(nil)
)

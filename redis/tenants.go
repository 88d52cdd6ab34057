package redis

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// Tenants lists all tenants, by the names of the keys on the servers. Sessions
// that an append which was broken off has not listed are listed.
func (s *Store) Tenants(ctx context.Context) ([]string, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	found := make(map[string]bool)
	keys, err := s.listKeys(ctx, "")
	if err != nil {
		return nil, failure(ctx, err)
	}
	for _, k := range keys {
		found[k.Tenant] = true
	}
	for _, kind := range []string{sessionKey, filesKey, usageKey} {
		err := s.scan(ctx, s.layout.global(kind)+":{", func(keys []string) error {
			for _, key := range keys {
				found[tenantOf(key[len(s.layout.global(kind)):])] = true
			}
			if kind == sessionKey {
				return s.relist(ctx, keys)
			}
			return nil
		})
		if err != nil {
			return nil, failure(ctx, err)
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// tenantOf reads the tenant from a key's hash tag, of a tenant or of a session.
func tenantOf(tag string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(tag, ":{"), "}")
	name, _, _ = strings.Cut(name, ":")
	return unescape(name)
}

// relist lists sessions that aren't, by their keys.
func (s *Store) relist(ctx context.Context, keys []string) error {
	pipe := s.client.Pipeline()
	read := make([]*goredis.SliceCmd, len(keys))
	for i, key := range keys {
		read[i] = pipe.HMGet(ctx, key, "id", "updated")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	pipe = s.client.Pipeline()
	for i, key := range keys {
		id, ok := read[i].Val()[0].(string)
		if !ok {
			continue // deleted meanwhile
		}
		updated, err := strconv.ParseInt(fmt.Sprint(read[i].Val()[1]), 10, 64)
		if err != nil {
			return errCorrupt
		}
		tenant := tenantOf(key[len(s.layout.global(sessionKey)):])
		pipe.ZAddNX(ctx, s.layout.tenant(sessionsKey, store.Scope{Tenant: tenant}), goredis.Z{Score: float64(updated * 1000), Member: id})
	}
	_, err := pipe.Exec(ctx)
	return err
}

// ForgetTenant removes a tenant's keys, its usage, what was counted of its rate,
// and what is left of sessions and files that aren't there.
func (s *Store) ForgetTenant(ctx context.Context, tenant string) (int, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.end()
	if tenant == "" { // which listKeys takes for everyone
		return 0, nil
	}
	keys, err := s.listKeys(ctx, tenant)
	if err != nil {
		return 0, failure(ctx, err)
	}
	pipe := s.client.Pipeline()
	for _, k := range keys {
		digest := hex.EncodeToString(k.Digest[:])
		pipe.Del(ctx, s.keyName(digest))
		pipe.ZRem(ctx, s.layout.global(keysKey), digest)
	}
	scope := store.Scope{Tenant: tenant}
	_, usage := s.usageKeys(scope)
	pipe.Del(ctx, append(usage, s.layout.tenant(rateKey, scope))...)
	files := pipe.Exists(ctx, s.layout.tenant(filesKey, scope))
	if _, err := pipe.Exec(ctx); err != nil {
		return len(keys), failure(ctx, err)
	}
	if err := s.unlistAll(ctx, scope); err != nil {
		return len(keys), failure(ctx, err)
	}
	left := []string{s.layout.tenant(expiringKey, scope)} // what it is for, listing does too
	if files.Val() == 0 {
		left = append(left, s.layout.tenant(orderKey, scope))
	}
	return len(keys), failure(ctx, s.client.Del(ctx, left...).Err())
}

var _ store.Tenants = (*Store)(nil)

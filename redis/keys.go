package redis

import (
	"context"
	"encoding/hex"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

var keyFields = []string{"tenant", "plan", "name", "created", "expires", "revoked"}

func (s *Store) keyName(digest string) string { return s.layout.global(keyKey) + ":" + digest }

// Key returns the key with the digest.
func (s *Store) Key(ctx context.Context, digest [32]byte) (store.Key, error) {
	if err := s.begin(ctx); err != nil {
		return store.Key{}, err
	}
	defer s.end()
	k, ok, err := readKey(digest, s.client.HMGet(ctx, s.keyName(hex.EncodeToString(digest[:])), keyFields...))
	switch {
	case err != nil:
		return store.Key{}, failure(ctx, err)
	case !ok:
		return store.Key{}, store.ErrNotFound
	}
	return k, nil
}

func readKey(digest [32]byte, cmd *goredis.SliceCmd) (k store.Key, ok bool, err error) {
	values, err := cmd.Result()
	if err != nil || len(values) != len(keyFields) || values[0] == nil {
		return k, false, err
	}
	var text [6]string
	for i := range text {
		text[i], _ = values[i].(string)
	}
	k = store.Key{Digest: digest, Tenant: text[0], Plan: text[1], Name: text[2]}
	for i, into := range []*time.Time{&k.Created, &k.Expires, &k.Revoked} {
		if text[3+i] == "" {
			continue
		}
		ms, err := strconv.ParseInt(text[3+i], 10, 64)
		if err != nil {
			return k, false, errCorrupt
		}
		*into = fromMilli(ms)
	}
	return k, true, nil
}

// PutKey adds the key, or replaces the one with the same digest.
func (s *Store) PutKey(ctx context.Context, k store.Key) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	digest := hex.EncodeToString(k.Digest[:])
	// Listed first: a digest without a key is skipped when they are listed, a
	// key that isn't listed couldn't be found to be revoked.
	// Also where the server is full: a key must be revoked then, too.
	err := s.run(ctx, putScript, []string{s.layout.global(keysKey)}, "ZADD", k.Created.UnixMilli(), digest).Err()
	if err == nil {
		err = s.run(ctx, putScript, []string{s.keyName(digest)}, "HSET", "tenant", k.Tenant, "plan", k.Plan, "name", k.Name,
			"created", k.Created.UnixMilli(), "expires", milli(k.Expires), "revoked", milli(k.Revoked)).Err()
	}
	return failure(ctx, err)
}

// ListKeys returns a tenant's keys, or all, oldest first.
func (s *Store) ListKeys(ctx context.Context, tenant string) ([]store.Key, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	keys, err := s.listKeys(ctx, tenant)
	return keys, failure(ctx, err)
}

func (s *Store) listKeys(ctx context.Context, tenant string) ([]store.Key, error) {
	digests, err := s.client.ZRange(ctx, s.layout.global(keysKey), 0, -1).Result()
	if err != nil || len(digests) == 0 {
		return nil, err
	}
	pipe := s.client.Pipeline()
	found := make([]*goredis.SliceCmd, len(digests))
	for i, digest := range digests {
		found[i] = pipe.HMGet(ctx, s.keyName(digest), keyFields...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	var keys []store.Key
	for i, cmd := range found {
		var digest [32]byte
		if n, err := hex.Decode(digest[:], []byte(digests[i])); err != nil || n != len(digest) {
			return nil, errCorrupt
		}
		k, ok, err := readKey(digest, cmd)
		if err != nil {
			return nil, err
		}
		if ok && (tenant == "" || k.Tenant == tenant) {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

func fromMilli(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// milli writes a time; one that isn't set is empty.
func milli(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

var _ store.Keys = (*Store)(nil)

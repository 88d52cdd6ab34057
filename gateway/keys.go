package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

var tenantName = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)

// ValidTenant reports whether a name can be a tenant's: 1 to 64 of a-z, 0-9, '.',
// '_' and '-'.
func ValidTenant(name string) bool { return tenantName.MatchString(name) }

// keyCacheTime is how long a key that the store knows is trusted: the time
// after which a revocation works everywhere (contract, section 1).
const keyCacheTime = 10 * time.Second

// keyCacheSize bounds the memory for known keys.
const keyCacheSize = 10_000

// keyring knows the service keys and plans.
type keyring struct {
	configured map[[32]byte]store.Key
	plans      map[string]Plan
	known      *keyCache
}

func newKeyring(keys []Key, plans map[string]Plan) (*keyring, error) {
	k := &keyring{
		configured: map[[32]byte]store.Key{},
		plans:      plans,
		known:      newKeyCache(),
	}
	for i, c := range keys {
		if !ValidTenant(c.Tenant) {
			return nil, fmt.Errorf("key %d: tenant %q must be 1 to 64 of a-z, 0-9, '.', '_' and '-'", i+1, c.Tenant)
		}
		if _, ok := plans[c.Plan]; !ok {
			return nil, fmt.Errorf("key %d: there is no plan %q", i+1, c.Plan)
		}
		if c.Unset {
			continue
		}
		if c.Key == "" {
			return nil, fmt.Errorf("key %d: the key is empty", i+1)
		}
		if strings.TrimSpace(c.Key) != c.Key {
			return nil, fmt.Errorf("key %d: the key begins or ends with white space, which no header keeps", i+1)
		}
		digest := sha256.Sum256([]byte(c.Key))
		if _, twice := k.configured[digest]; twice {
			return nil, fmt.Errorf("key %d: this key is given twice", i+1)
		}
		k.configured[digest] = store.Key{Digest: digest, Tenant: c.Tenant, Plan: c.Plan}
	}
	return k, nil
}

// errBadKey says that a service key isn't known, or no longer good.
var errBadKey = errors.New("incorrect service key")

// lookup finds the key and its plan. Errors other than errBadKey are the
// store's.
func (k *keyring) lookup(ctx context.Context, keys store.Keys, key string) (store.Key, Plan, error) {
	digest := sha256.Sum256([]byte(key))
	found, ok := k.configured[digest]
	if !ok {
		found, ok = k.known.get(digest)
		keyLookups.count(ok)
	}
	if !ok {
		if !wellFormed(key) { // no trip to the store for a typo
			return store.Key{}, Plan{}, errBadKey
		}
		var err error
		found, err = keys.Key(ctx, digest)
		if errors.Is(err, store.ErrNotFound) {
			return store.Key{}, Plan{}, errBadKey
		}
		if err != nil {
			return store.Key{}, Plan{}, err
		}
		k.known.add(digest, found)
	}
	plan, ok := k.plans[found.Plan]
	if !ok || !found.Valid(time.Now()) || subtle.ConstantTimeCompare(found.Digest[:], digest[:]) != 1 {
		return store.Key{}, Plan{}, errBadKey
	}
	return found, plan, nil
}

// ours reports whether a text is a service key, or looks like one: it must not
// go anywhere.
func (k *keyring) ours(text string) bool {
	if wellFormed(text) {
		return true
	}
	_, ok := k.configured[sha256.Sum256([]byte(text))]
	return ok
}

// Keys that we make look like bsk_<43 characters>_<6 characters>: 256 random
// bits, and their CRC-32, so that a typo is told from a wrong key and scanners
// for leaked secrets can know one.
const keyPrefix = "bsk_"

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewKey makes a service key.
func NewKey() string {
	random := make([]byte, 43) // of 62 each: 256 bits
	for i := range random {
		random[i] = base62[randomBelow62()]
	}
	return keyPrefix + string(random) + "_" + checksum(string(random))
}

// randomBelow62 draws evenly: bytes beyond the last multiple of 62 are drawn
// again.
func randomBelow62() byte {
	var b [1]byte
	for {
		rand.Read(b[:]) //nolint:errcheck // never fails (crypto/rand)
		if b[0] < 248 {
			return b[0] % 62
		}
	}
}

func checksum(s string) string {
	sum := crc32.ChecksumIEEE([]byte(s))
	var b [6]byte // 62^6 exceeds 2^32
	for i := range b {
		b[i] = base62[sum%62]
		sum /= 62
	}
	return string(b[:])
}

func wellFormed(key string) bool {
	rest, ok := strings.CutPrefix(key, keyPrefix)
	if !ok || len(rest) != 43+1+6 || rest[43] != '_' {
		return false
	}
	return checksum(rest[:43]) == rest[44:]
}

package redis

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/backstory-proxy/backstory/store"
)

// layout names the keys. What stands in braces decides the slot of a key in a
// Cluster. Tenants and files stand in them as escape writes them, so that no
// name can be taken for part of another; sessions, whose names may be long, as a
// digest.
type layout struct{ prefix string }

// Keys of one slot per session.
const (
	// sessionKey is a hash, written and read by scripts: see lua/append.lua.
	sessionKey = "session"
	// logKey is the list of its exchanges, newest last: see exchange.go.
	logKey = "log"
	// seenKey is a hash of digests of the exchanges' IDs to their Seq.
	seenKey = "seen"
	// vectorsKey is a hash of exchanges' Seqs to their vectors: see vectors.go.
	vectorsKey = "turn"
	// stagedLogKey and stagedSeenKey are what the log and seen will be when an
	// import is saved; behind the tag stands the import's name. They expire.
	stagedLogKey, stagedSeenKey = "staged_log", "staged_seen"
	// epochKey is when the session was last deleted, in microseconds.
	epochKey = "epoch"
)

// Keys of one slot per tenant.
const (
	rateKey     = "rate"     // sorted set of the requests of the last minute, by time
	usageKey    = "usage"    // string: the tokens used in a month
	sessionsKey = "sessions" // sorted set of the names of sessions, by last activity
	expiringKey = "expiring" // sorted set of those with a time to live, by when it is up
	filesKey    = "files"    // sorted set of file ids behind a serial number, by creation
	sameKey     = "same"     // hash of what makes files the same to a file's id
	liveKey     = "live"     // set of the ids of processed files
	darkKey     = "dark"     // set of the escaped ids of files whose chunks aren't to be found
	orderKey    = "order"    // counter of the files created
	totalsKey   = "totals"   // hash: what the files come to, see totals.go
	knownKey    = "known"    // hash of what vectors were made of to the places of chunks

	fileKey  = "file"  // hash: the record of a file
	goneKey  = "gone"  // hash: what is left to be removed of a deleted one
	blobKey  = "blob"  // hash of the parts of the compressed original, by number
	chunkKey = "chunk" // hash, indexed: see ingest.go
)

// Keys of all tenants.
const (
	keyKey     = "key"     // hash: a service key
	keysKey    = "keys"    // sorted set of the digests of service keys, by creation
	workKey    = "work"    // sorted set of the files being added or removed, by the time of the last step
	indexesKey = "indexes" // set of the vector indexes that ought to be there
)

// sessionTag is what the keys of a session have in common.
func sessionTag(scope store.Scope, session string) string {
	digest := sha256.Sum256([]byte(session))
	return ":{" + escape(scope.Tenant) + ":" + base64.RawURLEncoding.EncodeToString(digest[:]) + "}"
}

func (l layout) tagged(kind, tag string) string { return l.prefix + kind + tag }

func (l layout) tenant(kind string, scope store.Scope) string {
	return l.prefix + kind + ":{" + escape(scope.Tenant) + "}"
}

func (l layout) usage(scope store.Scope, month store.Month) string {
	return l.tenant(usageKey, scope) + ":" + month.String()
}

func (l layout) file(kind string, scope store.Scope, id string) string {
	return l.tenant(kind, scope) + ":" + escape(id)
}

func (l layout) chunk(scope store.Scope, id string, n int) string {
	return l.file(chunkKey, scope, id) + ":" + strconv.Itoa(n)
}

func (l layout) global(kind string) string { return l.prefix + kind }

const hexDigits = "0123456789abcdef"

// escape writes a name with letters, digits, '.', '_', '-' and '%' only. It is
// never empty: a Cluster would take the whole key for an empty hash tag.
func escape(name string) string {
	if name == "" {
		return "%"
	}
	if strings.IndexFunc(name, unsafeRune) < 0 {
		return name
	}
	var b strings.Builder
	for _, c := range []byte(name) {
		if unsafeRune(rune(c)) {
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unsafeRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}

// unescape undoes escape.
func unescape(name string) string {
	if name == "%" {
		return ""
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			if c, err := strconv.ParseUint(name[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

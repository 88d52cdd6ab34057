package migrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/backstory-proxy/backstory/store"
)

// Both stores are read whole. Of each key, session and file there is a digest
// over all that was to be copied, and of each tenant one over the digests of
// what it has. Left out is what each store makes up itself, Seq and Offset, and
// how it writes the terms of a chunk that hold no word.

// item is a key, a month's usage, a session or a file as one store has it.
type item struct {
	kind, name string
	tokens     int64 // of a month's usage
	counts     Counts
	digest     [32]byte
}

// what says what an item has, for people.
func (i *item) what() string {
	switch i.kind {
	case "session":
		return fmt.Sprintf("%d exchanges", i.counts.Exchanges)
	case "file":
		return fmt.Sprintf("%d chunks", i.counts.Chunks)
	case "usage":
		return fmt.Sprintf("%d tokens", i.tokens)
	}
	return ""
}

// listed reports whether stores list the item in an order of its own.
func (i *item) listed() bool { return i.kind == "session" || i.kind == "file" }

func (m *migrator) verify(ctx context.Context, source *plan) error {
	target, err := m.survey(ctx, m.to)
	if err != nil {
		return fmt.Errorf("look at the target: %w", err)
	}
	m.progress.begin("verifying", source.work+target.work)
	there := make(map[string]*tenantPlan)
	for i := range target.tenants {
		there[target.tenants[i].name] = &target.tenants[i]
	}
	for i := range source.tenants {
		a := &source.tenants[i]
		b := there[a.name]
		if b == nil {
			b = &tenantPlan{name: a.name}
		}
		delete(there, a.name)
		if err := m.verifyTenant(ctx, a, b, source.keys, target.keys); err != nil {
			return fmt.Errorf("verify tenant %s: %w", a.name, err)
		}
	}
	if m.opts.Merge {
		return nil
	}
	for i := range target.tenants {
		b := &target.tenants[i]
		if there[b.name] == nil {
			continue
		}
		if err := m.verifyTenant(ctx, &tenantPlan{name: b.name}, b, nil, target.keys); err != nil {
			return fmt.Errorf("verify tenant %s: %w", b.name, err)
		}
	}
	return nil
}

func (m *migrator) verifyTenant(ctx context.Context, a, b *tenantPlan, keysA, keysB []store.Key) error {
	sourceItems, err := m.items(ctx, m.from, a, keysA)
	if err != nil {
		return err
	}
	targetItems, err := m.items(ctx, m.to, b, keysB)
	if err != nil {
		return err
	}
	ours := make(map[[2]string]*item, len(sourceItems))
	for i := range sourceItems {
		ours[[2]string{sourceItems[i].kind, sourceItems[i].name}] = &sourceItems[i]
	}
	if m.opts.Merge {
		targetItems = slices.DeleteFunc(targetItems, func(i item) bool { return ours[[2]string{i.kind, i.name}] == nil })
	}
	m.compare(a.scope(), sourceItems, targetItems)
	t := Tenant{Name: a.name, Source: side(sourceItems), Target: side(targetItems)}
	if len(sourceItems)+len(targetItems) > 0 { // a tenant of whom all was deleted is none
		m.report.Tenants = append(m.report.Tenants, t)
		m.report.Source.add(t.Source.Counts)
		m.report.Target.add(t.Target.Counts)
	}
	return nil
}

func (m *migrator) compare(scope store.Scope, source, target []item) {
	there := make(map[[2]string]*item, len(target))
	for i := range target {
		there[[2]string{target[i].kind, target[i].name}] = &target[i]
	}
	var orderA, orderB []string // of what both have
	for i := range source {
		a := &source[i]
		b := there[[2]string{a.kind, a.name}]
		delete(there, [2]string{a.kind, a.name})
		switch {
		case b == nil:
			m.differ(scope, "%s %s is not in the target", a.kind, quoted(a.name))
			continue
		case a.kind == "usage" && m.opts.Merge && a.tokens < b.tokens: // it was used meanwhile
		case a.what() != b.what():
			m.differ(scope, "%s %s has %s in the source, %s in the target", a.kind, quoted(a.name), a.what(), b.what())
		case a.digest != b.digest:
			m.differ(scope, "%s %s is different in the target: digest %x, not %x", a.kind, quoted(a.name), b.digest[:6], a.digest[:6])
		}
		if a.listed() {
			orderA = append(orderA, a.kind+a.name)
		}
	}
	for i := range target {
		b := &target[i]
		if there[[2]string{b.kind, b.name}] != nil {
			m.differ(scope, "%s %s is in the target only", b.kind, quoted(b.name))
		} else if b.listed() {
			orderB = append(orderB, b.kind+b.name)
		}
	}
	if !slices.Equal(orderA, orderB) {
		m.differ(scope, "sessions or files are listed in another order")
	}
}

// side sums the items of a tenant up, in whatever order they are.
func side(items []item) Side {
	var s Side
	if len(items) > 0 {
		s.Tenants = 1
	}
	digests := make([][32]byte, len(items))
	for i := range items {
		s.Counts.add(items[i].counts)
		digests[i] = items[i].digest
	}
	slices.SortFunc(digests, func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
	h := sha256.New()
	for _, d := range digests {
		h.Write(d[:])
	}
	h.Sum(s.Digest[:0])
	return s
}

// items reads all that a store has of a tenant.
func (m *migrator) items(ctx context.Context, s store.Migrator, t *tenantPlan, keys []store.Key) ([]item, error) {
	var list []item
	for _, k := range keys {
		if k.Tenant == t.name {
			list = append(list, item{kind: "key", name: fmt.Sprintf("%x", k.Digest), counts: Counts{Keys: 1}, digest: keyDigest(k)})
		}
	}
	for _, u := range t.usage {
		list = append(list, item{kind: "usage", name: u.Month.String(), tokens: u.Tokens, counts: Counts{Months: 1}, digest: usageDigest(u)})
	}
	m.progress.advance(int64(len(t.usage)))
	first := len(list)
	list = append(list, make([]item, len(t.sessions)+len(t.files))...)
	rest := list[first:]
	err := m.each(ctx, len(t.sessions), m.opts.Workers, func(ctx context.Context, i int) (err error) {
		rest[i], err = m.sessionItem(ctx, s, t.scope(), t.sessions[i])
		return err
	})
	if err == nil {
		// To decompress originals takes memory, and a processor: few at once.
		rest = rest[len(t.sessions):]
		err = m.each(ctx, len(t.files), 2, func(ctx context.Context, i int) (err error) {
			rest[i], err = m.fileItem(ctx, s, t.scope(), t.files[i])
			return err
		})
	}
	return list, changed(err)
}

func keyDigest(k store.Key) [32]byte {
	w := begin("key")
	w.bytes(k.Digest[:])
	w.texts(k.Tenant, k.Plan, k.Name)
	for _, t := range []int64{milli(k.Created), milli(k.Expires), milli(k.Revoked)} {
		w.numbers(t)
	}
	return w.sum()
}

func usageDigest(u store.Used) [32]byte {
	w := begin("usage")
	w.numbers(int64(u.Month), u.Tokens)
	return w.sum()
}

func (m *migrator) sessionItem(ctx context.Context, s store.Migrator, scope store.Scope, d store.Session) (item, error) {
	i := item{kind: "session", name: d.ID, counts: Counts{Sessions: 1}}
	w := begin("session")
	w.texts(d.ID)
	w.numbers(milli(d.Created), milli(d.Updated), d.Messages, d.Tokens, d.TTL.Milliseconds())
	err := store.EachExchange(ctx, s, scope, d.ID, func(list []store.Exchange) error {
		vectors, err := vectorsOf(ctx, s, scope, d.ID, list)
		if err != nil {
			return err
		}
		messages := int64(0)
		for n := range list {
			e := &list[n]
			w.exchange(e)
			w.vector(vectors[e.Seq])
			messages += int64(len(e.Messages))
			i.counts.Exchanges++
			i.counts.Bytes += e.Bytes()
		}
		m.progress.advance(messages)
		return nil
	})
	i.digest = w.sum()
	return i, err
}

func (m *migrator) fileItem(ctx context.Context, s store.Migrator, scope store.Scope, f store.File) (item, error) {
	i := item{kind: "file", name: f.ID, counts: Counts{Files: 1}}
	content, err := s.Content(ctx, scope, f.ID)
	if err != nil {
		return i, err
	}
	defer content.Close()
	original := sha256.New()
	if i.counts.Bytes, err = io.Copy(original, content); err != nil {
		return i, err
	}
	w := begin("file")
	w.texts(f.ID, f.Name, f.Purpose, string(f.Status), f.Reason, f.Model)
	w.numbers(f.Bytes, f.Created.Unix(), int64(f.Chunks))
	w.bytes(f.Digest[:])
	w.bytes(original.Sum(nil))
	m.progress.advance(1)
	if f.Status == store.FileProcessed {
		err = chunks(ctx, s, scope, f.ID, func(list []store.Chunk) error {
			for n := range list {
				w.chunk(&list[n])
			}
			i.counts.Chunks += int64(len(list))
			m.progress.advance(int64(len(list)))
			return nil
		})
	}
	i.digest = w.sum()
	return i, err
}

// digester writes fields such that none can be taken for part of another.
type digester struct{ h hash.Hash }

func begin(kind string) digester {
	w := digester{sha256.New()}
	w.texts(kind)
	return w
}

func (w digester) bytes(b []byte) {
	w.numbers(int64(len(b)))
	w.h.Write(b)
}

func (w digester) texts(list ...string) {
	for _, s := range list {
		w.bytes([]byte(s))
	}
}

func (w digester) numbers(list ...int64) {
	for _, n := range list {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(n))
		w.h.Write(b[:])
	}
}

func (w digester) sum() (d [32]byte) {
	w.h.Sum(d[:0])
	return d
}

func (w digester) exchange(e *store.Exchange) {
	w.texts(e.ID, e.Parent, e.Model, e.Finish)
	hidden := int64(0)
	if e.Hidden {
		hidden = 1
	}
	w.numbers(milli(e.Created), hidden, int64(len(e.Passages)), int64(len(e.Recalled)), int64(len(e.Messages)))
	w.bytes(e.Carried[:])
	for _, p := range e.Passages {
		w.texts(p.FileID)
		w.numbers(int64(p.N))
	}
	for _, m := range e.Recalled {
		w.numbers(m.Seq, int64(m.N), int64(m.From), int64(m.To))
	}
	for i := range e.Messages {
		w.bytes(e.Messages[i].JSON)
		w.bytes(e.Messages[i].Digest[:])
		w.numbers(int64(e.Messages[i].Tokens), milli(e.Messages[i].Created))
	}
}

func (w digester) chunk(k *store.Chunk) {
	w.numbers(int64(k.N), int64(k.Page), int64(k.Tokens), int64(len(k.Vector)))
	w.texts(k.Text, k.Section, words(k.Terms))
	b := make([]byte, 0, 4*len(k.Vector))
	for _, x := range k.Vector {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	w.bytes(b)
}

// longestWord is the longest that every store indexes, in bytes.
const longestWord = 256

// words returns what every store indexes of terms. Package redis keeps no more
// of them.
func words(terms string) string {
	var list []string
	for word := range strings.FieldsFuncSeq(strings.ToValidUTF8(terms, " "), isBreak) {
		if len(word) <= longestWord && strings.ContainsFunc(word, isAlphanumeric) {
			list = append(list, word)
		}
	}
	return strings.Join(list, " ")
}

func isAlphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

func isBreak(r rune) bool { return !isAlphanumeric(r) && !unicode.IsMark(r) && r != '_' }

// milli is a time as stores keep it; 0 where it isn't set.
func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

package recall

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

const (
	// maxText is how much of a message is indexed, bytes.
	maxText = 1 << 20
	// maxNew is how many terms a message may bring that the session hasn't
	// seen: a message of 1 MB has about 10,000, one of random words 150,000.
	maxNew = 1 << 14
	// maxSpeakers is how many names a session may have.
	maxSpeakers = 64
	// maxName is where a name is cut, bytes.
	maxName = 64
	// pause ends a sitting. 3 to 12 hours are the same in REALTALK, the one
	// collection where it isn't given.
	pause = 6 * 60 * 60
	// maxSitting ends one where times don't, messages: a block of the session
	// stands in for a sitting. 24 to 80 differ by .005.
	maxSitting = 40
)

// Index holds what can be found of one session. Callers lock: Add and Remove
// change it, Search and Bytes don't, so that many may search at a time.
type Index struct {
	ids      map[uint64]uint32 // by the term's hash: no term is kept as text
	lists    []list            // by term id
	forward  []byte            // each piece's term ids, rising, as deltas
	pieces   []piece
	vectors  []int8    // each piece's, of wordvec.Dims
	sum      direction // of the vectors of pieces that aren't removed
	messages []message
	sittings []sitting
	speakers []speaker
	length   int // terms in all pieces
	live     int // pieces that aren't removed
	removed  int // messages that were, and are still here
	postings int // bytes of the lists' data

	pinned  func(text string) bool
	scratch []uint32
	said    []occurrence
}

// piece is what is found: a short message, or a part of a long one.
type piece struct {
	message  uint32
	from, to uint32
	forward  uint32 // where its terms start
	length   uint16 // its terms, repeats included
	flags    uint8
}

const (
	flagDead   uint8 = 1 << iota // removed
	flagTime                     // it names a time
	flagPinned                   // it holds a pinned instruction
)

type message struct {
	seq     int64
	time    int64 // seconds of its own zone's clock since 1970; noTime
	n       int32
	tokens  int32
	size    uint32 // bytes of the text
	first   uint32 // its first piece
	sitting uint32
	speaker uint8
	role    uint8
}

const (
	noTime    = math.MinInt64
	noSpeaker = math.MaxUint8

	roleUser uint8 = iota
	roleAssistant
	roleOther
)

// sitting is a run of messages without a long pause.
type sitting struct {
	first  uint32 // its first message
	length uint32 // terms
}

type speaker struct {
	name  string
	terms []uint32
}

// New returns an empty index. pinned reports whether a text of the user holds an
// instruction that always holds.
func New(pinned func(text string) bool) *Index {
	return &Index{ids: make(map[uint64]uint32), pinned: pinned}
}

// Add appends messages, in the order of the session: Seq never falls.
func (x *Index) Add(messages ...Message) {
	for i := range messages {
		x.add(&messages[i])
	}
}

func (x *Index) add(m *Message) {
	rec := message{seq: m.Seq, time: clock(m.Time), n: int32(m.N), tokens: int32(m.Tokens), size: uint32(len(m.Text)),
		first: uint32(len(x.pieces)), role: roleOf(m.Role), speaker: x.speaker(m.Name)}
	rec.sitting = x.sit(rec.time)
	x.messages = append(x.messages, rec)
	room := len(x.lists) + maxNew
	from := 0
	for _, to := range cut(m.Text[:whole(m.Text, maxText)]) {
		x.addPiece(&rec, m.Text[from:to], from, room)
		from = to
	}
}

// addPiece indexes the part of the newest message that starts at from. The
// session may grow to so many terms.
func (x *Index) addPiece(m *message, text string, from, room int) {
	p := piece{message: uint32(len(x.messages) - 1), from: uint32(from), to: uint32(from + len(text)), forward: uint32(len(x.forward))}
	ids, said := x.scratch[:0], x.said[:0]
	known := caches.Get().(*cache)
	for _, text := range terms.Of(text) {
		w := known.look(text)
		if w.time {
			p.flags |= flagTime
		}
		if w.stop {
			continue
		}
		if id, ok := x.intern(w.hash, room); ok {
			ids, said = append(ids, id), append(said, occurrence{id, w.vector})
		}
	}
	caches.Put(known)
	if m.role == roleUser && x.pinned(text) {
		p.flags |= flagPinned
	}
	p.length = uint16(min(len(ids), math.MaxUint16))
	if m.speaker != noSpeaker {
		ids = append(ids, x.speakers[m.speaker].terms...)
	}
	x.scratch, x.said = ids, said
	x.post(uint32(len(x.pieces)), ids)
	x.pieces = append(x.pieces, p)
	x.length += int(p.length)
	x.live++
	x.sittings[m.sitting].length += uint32(p.length)
	x.point(said)
}

// post notes that a piece has the terms.
func (x *Index) post(p uint32, ids []uint32) {
	slices.Sort(ids)
	previous := uint32(0)
	for i := 0; i < len(ids); {
		id, j := ids[i], i+1
		for j < len(ids) && ids[j] == id {
			j++
		}
		x.forward = binary.AppendUvarint(x.forward, uint64(id-previous))
		x.postings += x.lists[id].add(p, j-i)
		previous, i = id, j
	}
}

// intern returns the id of a term by its hash, a new one where there is room.
func (x *Index) intern(hash uint64, room int) (id uint32, ok bool) {
	if id, ok = x.ids[hash]; ok || len(x.lists) >= room {
		return id, ok
	}
	id = uint32(len(x.lists))
	x.ids[hash] = id
	x.lists = append(x.lists, list{})
	return id, true
}

// lookup returns the id of a term that was indexed.
func (x *Index) lookup(w string) (id uint32, ok bool) {
	id, ok = x.ids[look(w).hash]
	return id, ok
}

// sit returns the sitting of a message to come, a new one where one is due.
func (x *Index) sit(now int64) uint32 {
	n, last := len(x.messages), len(x.sittings)-1
	if last >= 0 {
		before := x.newest()
		paused := now != noTime && before != noTime && now-before >= pause
		if !paused && n-int(x.sittings[last].first) < maxSitting {
			return uint32(last)
		}
	}
	x.sittings = append(x.sittings, sitting{first: uint32(n)})
	return uint32(last + 1)
}

// newest is the time of the newest message that has one, of the last sitting.
func (x *Index) newest() int64 {
	for i := len(x.messages) - 1; i >= max(0, len(x.messages)-maxSitting); i-- {
		if t := x.messages[i].time; t != noTime {
			return t
		}
	}
	return noTime
}

// speaker returns the speaker of the name.
func (x *Index) speaker(name string) uint8 {
	if name = name[:min(len(name), maxName)]; name == "" {
		return noSpeaker
	}
	if i := slices.IndexFunc(x.speakers, func(s speaker) bool { return s.name == name }); i >= 0 {
		return uint8(i)
	}
	words := terms.Of(name)
	if len(x.speakers) == maxSpeakers || len(words) == 0 {
		return noSpeaker
	}
	s := speaker{name: strings.Clone(name)}
	for _, w := range words[:min(len(words), 8)] {
		id, _ := x.intern(look(w).hash, math.MaxInt)
		s.terms = append(s.terms, id)
	}
	x.speakers = append(x.speakers, s)
	return uint8(len(x.speakers) - 1)
}

// end is the piece after the last one of a message.
func (x *Index) end(m int) uint32 {
	if m+1 < len(x.messages) {
		return x.messages[m+1].first
	}
	return uint32(len(x.pieces))
}

// termsOf calls f with the ids of a piece's terms.
func (x *Index) termsOf(p uint32, f func(id uint32)) {
	end := len(x.forward)
	if int(p)+1 < len(x.pieces) {
		end = int(x.pieces[p+1].forward)
	}
	id := uint32(0)
	for d := x.forward[x.pieces[p].forward:end]; len(d) > 0; {
		v, n := binary.Uvarint(d)
		d = d[n:]
		id += uint32(v)
		f(id)
	}
}

// clock is what the clock shows at a time, as if it were UTC.
func clock(t time.Time) int64 {
	if t.IsZero() {
		return noTime
	}
	_, offset := t.Zone()
	return t.Unix() + int64(offset)
}

func roleOf(role string) uint8 {
	switch role {
	case "user":
		return roleUser
	case "assistant":
		return roleAssistant
	}
	return roleOther
}

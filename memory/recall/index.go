package recall

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"time"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

// Index holds what can be found of one session. It isn't safe for concurrent
// use: callers lock. Search doesn't change it, so many may search at a time.
type Index struct {
	seed     maphash.Seed
	ids      map[uint64]uint32 // by hash of the term: no term is kept as text
	lists    []list            // by term id
	forward  []byte            // the pieces' term ids, rising, as deltas
	pieces   []piece
	messages []message
	sittings []sitting
	names    []speaker
	length   int // terms in all pieces
	postings int // bytes of the lists
	live     int // pieces that are left
	lastMsg  time.Time

	scratch []uint32
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
	flagDead uint8 = 1 << iota
	flagTime       // it names a time
	flagStanding
)

type message struct {
	seq     int64
	n       int32
	tokens  int32
	first   uint32 // its first piece
	sitting uint32
	day     int32 // days since 1970; noDay where unknown
	speaker uint16
	role    uint8
}

const noDay = -1 << 31

const (
	roleUser uint8 = iota
	roleAssistant
	roleOther
)

// sitting is a run of messages without a long pause.
type sitting struct {
	first  uint32 // its first piece
	length uint32
}

type speaker struct {
	name  string
	terms []uint32
}

// New returns an empty index.
func New() *Index {
	return &Index{seed: maphash.MakeSeed(), ids: make(map[uint64]uint32)}
}

// Add appends messages, in the order of the session.
func (x *Index) Add(messages ...Message) {
	for i := range messages {
		x.add(&messages[i])
	}
}

func (x *Index) add(m *Message) {
	text := m.Text
	if len(text) > maxText {
		text = text[:maxText]
	}
	x.sit(m)
	at := uint32(len(x.messages))
	rec := message{seq: m.Seq, n: int32(m.N), tokens: int32(m.Tokens), first: uint32(len(x.pieces)),
		sitting: uint32(len(x.sittings) - 1), day: day(m.Time), role: roleOf(m.Role), speaker: x.speaker(m.Name)}
	x.messages = append(x.messages, rec)
	ends := cut(text)
	from := 0
	for i, to := range ends {
		x.piece(at, &rec, text[from:to], from, to, i == 0 && rec.role == roleUser)
		from = to
	}
	if n := len(ends); n > 0 {
		x.pieces[len(x.pieces)-1].to = uint32(len(m.Text))
	}
	if !m.Time.IsZero() {
		x.lastMsg = m.Time
	}
}

// piece indexes a part of a message.
func (x *Index) piece(at uint32, m *message, text string, from, to int, first bool) {
	ids := x.scratch[:0]
	for _, w := range terms.Of(text) {
		if !terms.Stop(w) {
			ids = append(ids, x.intern(w))
		}
	}
	length := len(ids)
	if int(m.speaker) < len(x.names) {
		ids = append(ids, x.names[m.speaker].terms...)
	}
	x.scratch = ids
	slices.Sort(ids)
	at0 := uint32(len(x.pieces))
	p := piece{message: at, from: uint32(from), to: uint32(to), forward: uint32(len(x.forward)), length: uint16(min(length, 1<<16-1))}
	if timed(text) {
		p.flags |= flagTime
	}
	if m.role == roleUser && standing(text) {
		p.flags |= flagStanding
	}
	previous := uint32(0)
	for i := 0; i < len(ids); {
		j := i + 1
		for j < len(ids) && ids[j] == ids[i] {
			j++
		}
		x.forward = binary.AppendUvarint(x.forward, uint64(ids[i]-previous))
		previous = ids[i]
		x.postings += x.lists[ids[i]].add(at0, j-i)
		i = j
	}
	x.pieces = append(x.pieces, p)
	x.length += int(p.length)
	x.live++
	x.sittings[m.sitting].length += uint32(p.length)
}

// intern returns the id of a term, a new one where it is new.
func (x *Index) intern(w string) uint32 {
	h := maphash.String(x.seed, terms.Stem(w))
	id, ok := x.ids[h]
	if !ok {
		id = uint32(len(x.lists))
		x.ids[h] = id
		x.lists = append(x.lists, list{})
	}
	return id
}

// lookup returns the id of a term that was indexed.
func (x *Index) lookup(w string) (uint32, bool) {
	id, ok := x.ids[maphash.String(x.seed, terms.Stem(w))]
	return id, ok
}

// sit begins a new sitting where one is due.
func (x *Index) sit(m *Message) {
	n := len(x.messages)
	if n > 0 {
		s := &x.sittings[len(x.sittings)-1]
		pause := !m.Time.IsZero() && !x.lastMsg.IsZero() && m.Time.Sub(x.lastMsg) >= Tune.Pause
		if !pause && n-int(x.pieces0(s)) < Tune.MaxSitting {
			return
		}
	}
	x.sittings = append(x.sittings, sitting{first: uint32(len(x.pieces))})
}

func (x *Index) pieces0(s *sitting) uint32 {
	if int(s.first) >= len(x.pieces) {
		return uint32(len(x.messages))
	}
	return x.pieces[s.first].message
}

func (x *Index) speaker(name string) uint16 {
	if name == "" {
		return 1<<16 - 1
	}
	for i := range x.names {
		if x.names[i].name == name {
			return uint16(i)
		}
	}
	if len(x.names) >= maxSpeakers {
		return 1<<16 - 1
	}
	s := speaker{name: name}
	for _, w := range terms.Of(name) {
		s.terms = append(s.terms, x.intern(w))
	}
	x.names = append(x.names, s)
	return uint16(len(x.names) - 1)
}

func day(t time.Time) int32 {
	if t.IsZero() {
		return noDay
	}
	_, offset := t.Zone()
	return int32((t.Unix() + int64(offset)) / 86400)
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

const (
	maxText     = 1 << 20
	maxSpeakers = 64
)

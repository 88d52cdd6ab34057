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
	// maxText is how many bytes of a message are indexed.
	maxText = 1 << 20
	// maxNew is how many new terms a message may add to the session. A message of
	// 1 MB has about 10,000; one of random words has 150,000.
	maxNew = 1 << 14
	// maxSpeakers is how many names of speakers a session may have.
	maxSpeakers = 64
	// maxName is the length in bytes to which a name is cut.
	maxName = 64
	// segmentPause is the pause in seconds that ends a segment. 3 to 12 hours do
	// equally well in REALTALK, the only data set in which segments aren't given.
	segmentPause = 6 * 60 * 60
	// maxSegment is the number of messages that ends a segment where pauses don't.
	// 24 to 80 differ by .005.
	maxSegment = 40
)

// Index is the searchable index of one session. It has no lock of its own: Add and
// Remove change it; Search and Bytes don't, and may run concurrently.
type Index struct {
	ids          map[uint64]uint32 // by the term's hash: no term is kept as text
	postings     []postingList     // by term id
	forward      []byte            // each chunk's term ids, ascending, as deltas
	chunks       []chunk
	vectors      []int8    // each chunk's, of wordvec.Dims
	sum          vectorSum // of the vectors of chunks that aren't removed
	messages     []message
	segments     []segment
	speakers     []speaker
	length       int // terms in all chunks
	live         int // chunks that aren't removed
	removed      int // messages that are marked removed
	postingBytes int // bytes of the posting lists' data

	pinned      func(text string) bool
	scratch     []uint32
	occurrences []occurrence
}

// chunk is the unit that is found: a short message, or a part of a long one.
type chunk struct {
	message  uint32
	from, to uint32
	forward  uint32 // where its terms begin
	length   uint16 // its terms, repeats included
	flags    uint8
}

const (
	flagRemoved uint8 = 1 << iota // removed
	flagTime                      // it names a time
	flagPinned                    // it holds a pinned instruction
)

type message struct {
	seq     int64
	time    int64 // as of wallClock
	n       int32
	tokens  int32
	size    uint32 // bytes of the text
	first   uint32 // its first chunk
	segment uint32
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

// segment is a run of messages without a long pause.
type segment struct {
	first  uint32 // its first message
	length uint32 // terms
}

type speaker struct {
	name  string
	terms []uint32
}

// New returns an empty index. pinned reports whether a user's text holds an
// instruction that always holds.
func New(pinned func(text string) bool) *Index {
	return &Index{ids: make(map[uint64]uint32), pinned: pinned}
}

// Add appends messages in the order of the session: Seq never decreases.
func (x *Index) Add(messages ...Message) {
	for i := range messages {
		x.add(&messages[i])
	}
}

func (x *Index) add(m *Message) {
	rec := message{seq: m.Seq, time: wallClock(m.Time), n: int32(m.N), tokens: int32(m.Tokens), size: uint32(len(m.Text)),
		first: uint32(len(x.chunks)), role: roleOf(m.Role), speaker: x.speaker(m.Name)}
	rec.segment = x.segmentFor(rec.time)
	x.messages = append(x.messages, rec)
	room := len(x.postings) + maxNew
	from := 0
	for _, to := range chunkEnds(m.Text[:runeBoundary(m.Text, maxText)]) {
		x.addChunk(&rec, m.Text[from:to], from, room)
		from = to
	}
}

// addChunk indexes the part of the newest message that begins at from. The session
// may grow to room terms.
func (x *Index) addChunk(m *message, text string, from, room int) {
	p := chunk{message: uint32(len(x.messages) - 1), from: uint32(from), to: uint32(from + len(text)), forward: uint32(len(x.forward))}
	ids, occurrences := x.scratch[:0], x.occurrences[:0]
	known := wordCaches.Get().(*wordCache)
	for _, text := range terms.Of(text) {
		w := known.analyse(text)
		if w.time {
			p.flags |= flagTime
		}
		if w.stop {
			continue
		}
		if id, ok := x.intern(w.hash, room); ok {
			ids, occurrences = append(ids, id), append(occurrences, occurrence{id, w.vector})
		}
	}
	wordCaches.Put(known)
	if m.role == roleUser && x.pinned(text) {
		p.flags |= flagPinned
	}
	p.length = uint16(min(len(ids), math.MaxUint16))
	if m.speaker != noSpeaker {
		ids = append(ids, x.speakers[m.speaker].terms...)
	}
	x.scratch, x.occurrences = ids, occurrences
	x.post(uint32(len(x.chunks)), ids)
	x.chunks = append(x.chunks, p)
	x.length += int(p.length)
	x.live++
	x.segments[m.segment].length += uint32(p.length)
	x.addVector(occurrences)
}

// post adds a chunk to the posting lists of its terms.
func (x *Index) post(p uint32, ids []uint32) {
	slices.Sort(ids)
	previous := uint32(0)
	for i := 0; i < len(ids); {
		id, j := ids[i], i+1
		for j < len(ids) && ids[j] == id {
			j++
		}
		x.forward = binary.AppendUvarint(x.forward, uint64(id-previous))
		x.postingBytes += x.postings[id].add(p, j-i)
		previous, i = id, j
	}
}

// intern returns the id of a term by its hash. It adds the term if there is room.
func (x *Index) intern(hash uint64, room int) (id uint32, ok bool) {
	if id, ok = x.ids[hash]; ok || len(x.postings) >= room {
		return id, ok
	}
	id = uint32(len(x.postings))
	x.ids[hash] = id
	x.postings = append(x.postings, postingList{})
	return id, true
}

// lookup returns the id of a word's term, if it was indexed.
func (x *Index) lookup(w string) (id uint32, ok bool) {
	id, ok = x.ids[analyse(w).hash]
	return id, ok
}

// segmentFor returns the segment of the next message. It begins a new one if one is
// due.
func (x *Index) segmentFor(now int64) uint32 {
	n, last := len(x.messages), len(x.segments)-1
	if last >= 0 {
		before := x.newest()
		paused := now != noTime && before != noTime && now-before >= segmentPause
		if !paused && n-int(x.segments[last].first) < maxSegment {
			return uint32(last)
		}
	}
	x.segments = append(x.segments, segment{first: uint32(n)})
	return uint32(last + 1)
}

// newest returns the time of the newest message that has one, among the last
// maxSegment messages.
func (x *Index) newest() int64 {
	for i := len(x.messages) - 1; i >= max(0, len(x.messages)-maxSegment); i-- {
		if t := x.messages[i].time; t != noTime {
			return t
		}
	}
	return noTime
}

// speaker returns the index of the speaker with the name.
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
		id, _ := x.intern(analyse(w).hash, math.MaxInt)
		s.terms = append(s.terms, id)
	}
	x.speakers = append(x.speakers, s)
	return uint8(len(x.speakers) - 1)
}

// end returns the index of the chunk that follows the last one of a message.
func (x *Index) end(m int) uint32 {
	if m+1 < len(x.messages) {
		return x.messages[m+1].first
	}
	return uint32(len(x.chunks))
}

// termsOf calls f with the ids of a chunk's terms.
func (x *Index) termsOf(p uint32, f func(id uint32)) {
	end := len(x.forward)
	if int(p)+1 < len(x.chunks) {
		end = int(x.chunks[p+1].forward)
	}
	id := uint32(0)
	for d := x.forward[x.chunks[p].forward:end]; len(d) > 0; {
		v, n := binary.Uvarint(d)
		d = d[n:]
		id += uint32(v)
		f(id)
	}
}

// wallClock returns a time as seconds since 1970, as if the clock of its zone showed
// UTC; noTime for the zero time.
func wallClock(t time.Time) int64 {
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

package recall

import (
	"cmp"
	"math"
	"slices"

	"github.com/backstory-proxy/backstory/memory/recall/internal/wordvec"
)

const (
	// alikeShare is what a piece that means the same counts beside the best
	// match of words (1.6, 1.8, 1.4, 3.0).
	alikeShare = .45
	// alikeMost is how many of the best matches are compared. 250 are too few
	// for 8,000 tokens, 1,000 bring no more. Where fewer match, alikeAll of the
	// newest pieces are compared, as the question may be in other words: in
	// less than a millisecond.
	alikeMost, alikeAll = 500, 10_000
	// alikeLeast is how much alike a piece is, of 1, that is found though it
	// shares no word with the query; alikeFew such pieces are found from
	// alikeFewLeast on, the best ones.
	alikeLeast, alikeFewLeast = .35, .2
	alikeFew                  = 8
)

// direction is a sum of vectors.
type direction [wordvec.Dims]float32

func (d *direction) add(vector []int8, times float32) {
	vector = vector[:wordvec.Dims]
	for i := range d {
		d[i] += times * float32(vector[i])
	}
}

// occurrence is a word of a text.
type occurrence struct {
	id     uint32
	vector wordvec.ID
}

// vector is that of a piece: where its words point to, each by its rarity in
// the session so far, of length wordvec.Unit where all of them are known. The
// others point elsewhere, each to a side of its own: they make it shorter.
func (x *Index) vector(p int) []int8 { return x.vectors[p*wordvec.Dims : (p+1)*wordvec.Dims] }

// point appends the vector of the newest piece.
func (x *Index) point(said []occurrence) {
	var sum direction
	rest := float32(0)
	for _, o := range said {
		rest += sum.addWord(o.vector, x.idf(o.id))
	}
	sum.scale(rest)
	for _, v := range sum {
		x.vectors = append(x.vectors, int8(math.Round(float64(max(-127, min(127, v))))))
	}
	x.sum.add(x.vector(len(x.pieces)-1), 1)
}

// addWord adds a word's vector; of one that isn't known it returns the square of
// what would have been added.
func (d *direction) addWord(id wordvec.ID, weight float64) (rest float32) {
	v, w := id.Vector(), float32(weight)
	if v == "" {
		return w * w * wordvec.Unit * wordvec.Unit
	}
	v = v[:wordvec.Dims]
	for i := range d {
		d[i] += w * float32(int8(v[i]))
	}
	return 0
}

// scale brings a sum to wordvec.Unit, together with the rest.
func (d *direction) scale(rest float32) {
	square := d.times(d) + rest
	if square == 0 {
		return
	}
	f := wordvec.Unit / float32(math.Sqrt(float64(square)))
	for i := range d {
		d[i] *= f
	}
}

func (d *direction) times(e *direction) float32 {
	var sum float32
	for i := range d {
		sum += d[i] * e[i]
	}
	return sum
}

// alike raises the pieces that say much the same as the query in other words.
func (s *search) alike(words []string) {
	c, ok := s.compass(words)
	if !ok || len(s.scores) == 0 {
		return
	}
	most := slices.Max(s.scores)
	if most == 0 {
		most = 1
	}
	var others []likeness // pieces without a word of the query
	for _, p := range s.contenders(most) {
		if l := c.cosine(int(p)); s.scores[p] > 0 {
			s.scores[p] += alikeShare * most * max(0, l)
		} else if l > alikeFewLeast {
			others = append(others, likeness{p, l})
		}
	}
	slices.SortFunc(others, func(a, b likeness) int {
		return cmp.Or(cmp.Compare(b.cosine, a.cosine), cmp.Compare(b.piece, a.piece))
	})
	for i, o := range others {
		if i < alikeFew || o.cosine > alikeLeast {
			s.scores[o.piece] = alikeShare * most * o.cosine
		}
	}
}

type likeness struct {
	piece  uint32
	cosine float64
}

// compass tells how near in meaning a piece is to a query.
type compass struct {
	x          *Index
	to         direction // of the query, without mean, at length 1
	mean       direction // of the session's pieces: it doesn't tell them apart
	base, self float32   // to and mean, times mean
}

// compass reports false where no word of the query is known.
func (s *search) compass(words []string) (c compass, ok bool) {
	x := s.x
	if x.live == 0 {
		return c, false
	}
	rest := float32(0)
	for _, w := range words {
		known, weight := look(w), rarity(float64(x.live), 0)
		if id, ok := x.ids[known.hash]; ok {
			weight = x.idf(id)
		}
		rest += c.to.addWord(known.vector, weight)
	}
	if c.to == (direction{}) {
		return c, false
	}
	c.to.scale(rest)
	for i := range c.mean {
		c.mean[i] = x.sum[i] / float32(x.live)
	}
	c.x, c.self = x, c.mean.times(&c.mean)
	known, length := c.without(c.to.times(&c.to), c.to.times(&c.mean))
	for i := range c.to {
		c.to[i] = (c.to[i] - known*c.mean[i]) / length
	}
	c.base = c.to.times(&c.mean)
	return c, true
}

// without tells of a vector, by its own square and its product with the mean,
// how much of the mean is in it, and how long the rest of it is. As much as its
// known words weigh: the others have nothing of the mean, and count for the
// length.
func (c *compass) without(square, product float32) (known, length float32) {
	const all = wordvec.Unit * wordvec.Unit
	known = min(1, square/all)
	rest := max(square, all) - 2*known*product + known*known*c.self
	return known, float32(math.Sqrt(float64(max(1, rest))))
}

// cosine is how much alike the query and a piece are, -1 to 1; 0 where no word
// of the piece is known.
func (c *compass) cosine(p int) float64 {
	var to, mean, square float32
	v := c.x.vector(p)[:wordvec.Dims]
	for i := range v {
		f := float32(v[i])
		to += c.to[i] * f
		mean += c.mean[i] * f
		square += f * f
	}
	known, length := c.without(square, mean)
	return float64((to - known*c.base) / length)
}

// contenders returns the pieces with the highest scores, up to alikeMost, or
// alikeAll where fewer have any; of those that are about as high, the newest.
func (s *search) contenders(most float64) []uint32 {
	const steps = 256
	var heights [steps]int
	height := func(p int) int { return int(s.scores[p] / most * (steps - 1)) }
	for p := range s.scores {
		if s.x.pieces[p].flags&flagDead == 0 {
			heights[height(p)]++
		}
	}
	least, room := steps-1, alikeMost
	for least > 0 && heights[least] <= room {
		room -= heights[least]
		least--
	}
	if least == 0 {
		room += alikeAll - alikeMost
	}
	found := make([]uint32, 0, alikeMost)
	for p := len(s.scores) - 1; p >= 0; p-- {
		if s.x.pieces[p].flags&flagDead != 0 {
			continue
		}
		h := height(p)
		if h == least && room > 0 {
			room--
			found = append(found, uint32(p))
		} else if h > least {
			found = append(found, uint32(p))
		}
	}
	return found
}

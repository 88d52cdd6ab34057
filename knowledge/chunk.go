package knowledge

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/backstory-proxy/backstory/knowledge/terms"
	"github.com/backstory-proxy/backstory/store"
)

// Chunking says how documents are cut.
type Chunking struct {
	// Size is the most tokens of a chunk. Default: DefaultSize.
	Size int
	// Overlap is how many tokens at most are repeated from the chunk
	// before, where both are of one section. Default: DefaultOverlap;
	// negative: none.
	Overlap int
}

// The defaults of Chunking, tokens. All of the answer is in the chunks that
// fit into 1,000/2,000/4,000 tokens, each with 32 more for naming its source,
// for this share of questions, searching by words only:
//
//	size/overlap   SQuAD            Chroma
//	300/60         .930/.958/.973   .873/.945/.982
//	300/none       .895/.910/.930   .859/.950/.977
//	400/60         .917/.958/.968   .850/.950/.982
//	200/40         .912/.935/.950   .877/.955/.982
const (
	DefaultSize    = 300
	DefaultOverlap = 60
)

// minSize keeps every character within the limit, tokens.
const minSize = 16

// packer collects units into chunks.
type packer struct {
	doc     *Document
	size    int
	overlap int
	count   func(string) int
	emit    func(store.Chunk)

	held   []unit // what is in no chunk yet, the overlap ahead of it
	fresh  int    // held[fresh:] was in no chunk
	tokens int    // of held
	n      int    // chunks so far
}

// chunker cuts the documents of a file, one after the other.
type chunker struct {
	packer
	outline outline
}

func newChunker(c Chunking, count func(string) int, emit func(store.Chunk)) *chunker {
	if c.Size <= 0 {
		c.Size = DefaultSize
	}
	c.Size = max(c.Size, minSize)
	if c.Overlap == 0 {
		c.Overlap = DefaultOverlap
	}
	k := &chunker{packer: packer{size: c.Size, overlap: min(c.Overlap, c.Size/2), count: count, emit: emit}}
	k.outline = outline{cutter: cutter{count: count, limit: c.Size, emit: k.packer.add}, paragraph: -1, next: borderHeading}
	return k
}

// document cuts the next document of the file. No chunk holds text of two.
func (k *chunker) document(d *Document) {
	k.packer.doc = d
	k.outline.document(d)
	k.packer.flush()
	k.packer.held, k.packer.fresh, k.packer.tokens = nil, 0, 0
}

// add takes the next unit, and closes the chunk under way where it doesn't
// fit, where a page or a sheet begins, or where a section begins and there is
// enough for a chunk: a chunk is cited by the place of its beginning, and a
// heading of another section stands in it, but nothing of another page or sheet.
func (p *packer) add(next unit) {
	for len(p.held) > p.fresh && (p.tokens+next.tokens > p.size || p.startsPage(next) || next.border >= borderHeading && p.tokens >= p.size/3) {
		after := next.border
		if p.startsPage(next) && p.tokens < p.size/3 {
			after = borderHeading // no overlap: a short page would be repeated whole
		}
		p.close(after)
	}
	// An overlap that leaves no room for the next unit is dropped.
	for len(p.held) > 0 && p.fresh > 0 && p.tokens+next.tokens > p.size {
		p.tokens -= p.held[0].tokens
		p.held = p.held[1:]
		p.fresh--
	}
	p.held = append(p.held, next)
	p.tokens += next.tokens
}

// startsPage reports whether the next unit begins a page or a sheet. A heading
// goes with what follows it.
func (p *packer) startsPage(next unit) bool {
	last := p.held[len(p.held)-1]
	return (next.page != last.page || next.border == borderSheet) && !last.heading
}

// flush closes the last chunk.
func (p *packer) flush() {
	for len(p.held) > p.fresh {
		p.close(borderHeading)
	}
}

// close makes a chunk of the units held, or of most of them where a better
// place to cut is near the end; after is the border behind the last.
func (p *packer) close(after border) {
	end := p.cut(after)
	text := p.text(end)
	tokens := p.count(text)
	// The tokens of the units need not add up to those of the whole.
	for tokens > p.size && end > p.fresh+1 {
		end--
		text = p.text(end)
		tokens = p.count(text)
	}
	for tokens > p.size && p.fresh > 0 {
		p.held, p.fresh, end = p.held[1:], p.fresh-1, end-1
		text = p.text(end)
		tokens = p.count(text)
	}
	if text != "" {
		section, page := p.place(end)
		chunk := store.Chunk{N: p.n, Text: text, Section: section, Page: page, Tokens: tokens}
		p.doc.index(&chunk)
		p.emit(chunk)
		p.n++
	}
	if end < len(p.held) {
		after = p.held[end].border
	}
	keep, repeated := end, 0
	for after < borderHeading && keep > 1 && repeated+p.held[keep-1].tokens <= p.overlap {
		keep--
		repeated += p.held[keep].tokens
	}
	p.held = slices.Clone(p.held[keep:])
	p.fresh = end - keep
	p.tokens = 0
	for _, h := range p.held {
		p.tokens += h.tokens
	}
}

// cut returns how many of the units held make the chunk: all, or fewer if
// that leaves at least two thirds of the size and ends at a better border.
func (p *packer) cut(after border) int {
	best, strength := len(p.held), after
	tokens := 0
	for i, h := range p.held {
		if i > p.fresh && tokens >= p.size*2/3 && h.border > strength {
			best, strength = i, h.border
		}
		tokens += h.tokens
	}
	// A heading goes with what follows it.
	for best > p.fresh+1 && (best < len(p.held) || after < borderHeading) && p.held[best-1].heading {
		best--
	}
	return best
}

// text is that of the first n units held, without white space behind it and
// blank lines ahead; the indentation of code stays.
func (p *packer) text(n int) string {
	s := strings.TrimRightFunc(p.doc.Text[p.held[0].start:p.held[n-1].end], unicode.IsSpace)
	ahead := len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace))
	return s[strings.LastIndexByte(s[:ahead], '\n')+1:]
}

// place is the heading path and the page of the chunk of the first n units
// held: of the first one that isn't a heading and isn't repeated.
func (p *packer) place(n int) (section string, page int) {
	for _, h := range p.held[p.fresh:n] {
		if !h.heading {
			return h.section, h.page
		}
	}
	return p.held[n-1].section, p.held[n-1].page
}

// index sets the terms of a chunk: the words of the file's name, of the
// heading path and of the text. What a chunk is about often stands in its
// heading or in the name only.
func (d *Document) index(c *store.Chunk) {
	words := terms.Of(strings.TrimSuffix(path.Base(d.Name), path.Ext(d.Name)))
	words = append(words, terms.Of(c.Section)...)
	words = append(words, terms.Of(c.Text)...)
	for _, halves := range hyphenated.FindAllStringSubmatch(c.Text, -1) {
		words = append(words, terms.Of(halves[1]+halves[2])...)
	}
	c.Terms = strings.Join(words, " ")
}

// hyphenated finds words that are hyphenated at the end of a line. They are
// indexed whole as well.
var hyphenated = regexp.MustCompile(`(\pL+)[-\x{2010}]\n[ \t]*(\p{Ll}+)`)

package prompt

import (
	"slices"
	"strings"
)

// block is a chunk as it is quoted, or several that follow each other in a file:
// what one repeats of the one before it is quoted once, and so are the markers
// and the source.
type block struct {
	chunks []Chunk // in the order of the file
	text   string
	tokens int
}

// leastOverlap is how many bytes two chunks have in common at least where one is
// held to repeat the end of the other: fewer may be the same by chance.
const leastOverlap = 16

// Behind returns what is quoted of a chunk behind the one before it in the file.
// false: it isn't quoted there, since it doesn't follow, or stands in another
// section, and a block names one.
func (c *Chunk) Behind(before *Chunk) (rest string, follows bool) {
	if c.FileID != before.FileID || c.N != before.N+1 || c.Section != before.Section {
		return "", false
	}
	for n := min(len(before.Text), len(c.Text)); n >= leastOverlap; n-- {
		if strings.HasSuffix(before.Text, c.Text[:n]) {
			return c.Text[n:], true
		}
	}
	return "\n" + c.Text, true
}

// stitch makes blocks of chunks, which come best first.
func stitch(chunks []Chunk) (blocks []block) {
	for _, c := range chunks {
		blocks, _, _ = insert(blocks, c)
	}
	return blocks
}

// insert returns the blocks with one more chunk, where among them it is, and the
// tokens of those that it became a part of. Neighbours stand where the best of
// them stood.
func insert(blocks []block, c Chunk) (with []block, at, replaced int) {
	b := block{chunks: []Chunk{c}, text: c.Text}
	at = -1
	for _, other := range blocks {
		if !b.join(&other, &c) {
			with = append(with, other)
			continue
		}
		replaced += other.tokens
		if at < 0 {
			at = len(with)
			with = append(with, block{}) // its place
		}
	}
	if at < 0 {
		at = len(with)
		with = append(with, block{})
	}
	with[at] = b
	return with, at, replaced
}

// join adds another block to one that holds c, where that stands next to it.
func (b *block) join(other *block, c *Chunk) bool {
	first, last := &other.chunks[0], &other.chunks[len(other.chunks)-1]
	if rest, ok := c.Behind(last); ok {
		b.text = other.text + rest + b.text[len(c.Text):]
		b.chunks = slices.Concat(other.chunks, b.chunks)
		return true
	}
	if rest, ok := first.Behind(c); ok {
		b.text += rest + other.text[len(first.Text):]
		b.chunks = slices.Concat(b.chunks, other.chunks)
		return true
	}
	return false
}

// inBlocks are the chunks in the order in which they are quoted.
func inBlocks(blocks []block) (chunks []Chunk) {
	for i := range blocks {
		chunks = append(chunks, blocks[i].chunks...)
	}
	return chunks
}

package extract

import (
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// articleLength is the length below which a page is small enough to be
	// read as a whole, characters.
	articleLength = 1500
	// articleShare is the least share of the text outside links that is
	// believed to be all of an article: where less was found, something that
	// is no article was torn apart.
	articleShare = 0.6
	// articleDepth is the mean depth of a page's text and articleNodes the number
	// of its nodes above which no article is looked for: that takes time by the
	// depth, and memory by the nodes. Pages that people wrote are up to thirty
	// deep; the longest articles of an encyclopedia have 60,000 nodes.
	articleDepth = 60
	articleNodes = 100_000
)

// mainPart returns the part of a page that is what the page is about, without
// menus, teasers and notices; nil where there is none, or no need to look.
func mainPart(root *html.Node) *html.Node {
	body := find(root, atom.Body, 0)
	if body == nil {
		return nil
	}
	all, linked := textLength(body, 0)
	if t := measure(body, 0); all < articleLength || t.nodes > articleNodes || t.depths > articleDepth*t.size {
		return nil
	}
	parser := readability.NewParser()
	found, err := parser.ParseDocument(root, nil)
	if err != nil || found.Node == nil {
		return nil
	}
	kept, _ := textLength(found.Node, 0)
	if float64(kept) < articleShare*float64(all-linked) {
		return nil
	}
	return found.Node
}

// tree is how large a part of a page is.
type tree struct {
	nodes  int
	size   int // of nodes and bytes of text
	depths int // sum of how deep each of them stands
}

func measure(n *html.Node, depth int) tree {
	t := tree{nodes: 1, size: 1}
	if n.Type == html.TextNode {
		t.size += len(n.Data)
	}
	t.depths = t.size * depth
	for c := n.FirstChild; c != nil && depth < maxDepth; c = c.NextSibling {
		inner := measure(c, depth+1)
		t.nodes, t.size, t.depths = t.nodes+inner.nodes, t.size+inner.size, t.depths+inner.depths
	}
	return t
}

// emitTitle emits the title of a page as the heading of its main part, unless
// that part begins with a heading of its own.
func emitTitle(o *output, root *html.Node) error {
	title := find(root, atom.Title, 0)
	if title == nil || title.FirstChild == nil {
		return nil
	}
	return o.heading(1, strings.TrimSpace(title.FirstChild.Data))
}

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
)

// mainPart returns the part of a page that is what the page is about, without
// menus, teasers and notices; nil where there is none, or no need to look.
func mainPart(root *html.Node) *html.Node {
	body := find(root, atom.Body, 0)
	if body == nil {
		return nil
	}
	all, linked := textLength(body, 0)
	if all < articleLength {
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

// emitTitle emits the title of a page as the heading of its main part, unless
// that part begins with a heading of its own.
func emitTitle(o *output, root *html.Node) error {
	title := find(root, atom.Title, 0)
	if title == nil || title.FirstChild == nil {
		return nil
	}
	return o.heading(1, strings.TrimSpace(title.FirstChild.Data))
}

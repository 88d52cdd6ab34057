package extract

import (
	"strconv"
	"strings"
)

// wordStyle is what of a style says what a paragraph is.
type wordStyle struct {
	base  string
	level int // of a heading; 0: none
	list  listRef
}

type styles map[string]wordStyle

// readStyles reads the styles of a Word document.
func readStyles(a *archive, part string) styles {
	all := styles{}
	_ = a.xml(part, func(x *xmlReader, _ element) error { // without styles, all is plain
		return x.find("style", func(e element) error {
			id := e.attr("styleId")
			var s wordStyle
			err := x.each(func(e element) error {
				switch e.name() {
				case "name":
					s.level = headingLevel(e.attr("val"))
				case "basedOn":
					s.base = e.attr("val")
				case "pPr":
					return readStyle(x, &s)
				}
				return x.skip()
			}, nil)
			all[id] = s
			return err
		})
	})
	return all
}

func readStyle(x *xmlReader, s *wordStyle) error {
	return x.each(func(e element) error {
		switch e.name() {
		case "outlineLvl":
			if n, err := strconv.Atoi(e.attr("val")); err == nil && n >= 0 && n < 9 && s.level == 0 {
				s.level = n + 1
			}
		case "numPr":
			var err error
			s.list, err = readListRef(x)
			return err
		}
		return x.skip()
	}, nil)
}

// headingLevel is the level that the name of a built-in style stands for.
func headingLevel(name string) int {
	name = strings.ToLower(name)
	if name == "title" {
		return 1
	}
	if n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(name, "heading"))); err == nil && strings.HasPrefix(name, "heading") && n > 0 && n <= 9 {
		return n
	}
	return 0
}

// resolve returns a style with what it takes from those that it is based on.
func (s styles) resolve(id string) wordStyle {
	style, ok := s[id]
	if !ok {
		style.level = headingLevel(id)
		return style
	}
	base := style.base
	for range 20 {
		from, ok := s[base]
		if !ok {
			break
		}
		if style.level == 0 {
			style.level = from.level
		}
		if style.list.num == "" {
			style.list = from.list
		}
		base = from.base
	}
	return style
}

// readListRef reads a numPr.
func readListRef(x *xmlReader) (ref listRef, err error) {
	err = x.each(func(e element) error {
		switch e.name() {
		case "numId":
			ref.num = e.attr("val")
		case "ilvl":
			ref.level, _ = strconv.Atoi(e.attr("val"))
			ref.level = min(max(ref.level, 0), 8)
		}
		return x.skip()
	}, nil)
	return ref, err
}

// listLevel is how a level of a list is numbered.
type listLevel struct {
	format string // decimal, lowerLetter, bullet …
	text   string // such as "%1.%2"
	start  int
}

// numbering holds the lists of a Word document, and how far each has come.
type numbering struct {
	lists    map[string]string        // num to abstract list
	levels   map[string][9]*listLevel // of abstract lists
	override map[string]map[int]int   // num to level to start
	counters map[string]*[9]int       // of abstract lists
	begun    map[string]bool          // nums whose overrides were applied
}

func readNumbering(a *archive, part string) numbering {
	n := numbering{
		lists: map[string]string{}, levels: map[string][9]*listLevel{}, override: map[string]map[int]int{},
		counters: map[string]*[9]int{}, begun: map[string]bool{},
	}
	_ = a.xml(part, func(x *xmlReader, _ element) error { // without it, items have no numbers
		return x.each(func(e element) error {
			switch e.name() {
			case "abstractNum":
				levels, err := readLevels(x)
				n.levels[e.attr("abstractNumId")] = levels
				return err
			case "num":
				return n.readNum(x, e.attr("numId"))
			}
			return x.skip()
		}, nil)
	})
	return n
}

func readLevels(x *xmlReader) (levels [9]*listLevel, err error) {
	err = x.each(func(e element) error {
		i, wrong := strconv.Atoi(e.attr("ilvl"))
		if e.name() != "lvl" || wrong != nil || i < 0 || i > 8 {
			return x.skip()
		}
		l := &listLevel{start: 1}
		levels[i] = l
		return x.each(func(e element) error {
			switch e.name() {
			case "start":
				l.start, _ = strconv.Atoi(e.attr("val"))
			case "numFmt":
				l.format = e.attr("val")
			case "lvlText":
				l.text = e.attr("val")
			}
			return x.skip()
		}, nil)
	}, nil)
	return levels, err
}

func (n *numbering) readNum(x *xmlReader, num string) error {
	return x.each(func(e element) error {
		switch e.name() {
		case "abstractNumId":
			n.lists[num] = e.attr("val")
		case "lvlOverride":
			level, _ := strconv.Atoi(e.attr("ilvl"))
			return x.each(func(e element) error {
				if start, err := strconv.Atoi(e.attr("val")); e.name() == "startOverride" && err == nil {
					if n.override[num] == nil {
						n.override[num] = map[int]int{}
					}
					n.override[num][level] = start
				}
				return x.skip()
			}, nil)
		}
		return x.skip()
	}, nil)
}

// next counts an item and returns its label, such as "2.1"; empty where it has
// a bullet or nothing.
func (n *numbering) next(ref listRef) string {
	abstract, ok := n.lists[ref.num]
	if !ok {
		return ""
	}
	levels := n.levels[abstract]
	c := n.counters[abstract]
	if c == nil {
		c = new([9]int)
		for i := range c {
			c[i] = -1 // not begun
		}
		n.counters[abstract] = c
	}
	if !n.begun[ref.num] {
		n.begun[ref.num] = true
		for level, start := range n.override[ref.num] {
			if level >= 0 && level < 9 {
				c[level] = start - 1
			}
		}
	}
	for i := range ref.level + 1 {
		switch start := startOf(levels[i]); {
		case i == ref.level && c[i] < 0:
			c[i] = start
		case i == ref.level:
			c[i]++
		case c[i] < 0:
			c[i] = start
		}
	}
	for i := ref.level + 1; i < 9; i++ {
		c[i] = -1
	}
	return label(levels, c, ref.level)
}

func startOf(l *listLevel) int {
	if l == nil {
		return 1
	}
	return max(l.start, 0)
}

// label writes the numbers of an item as its level says.
func label(levels [9]*listLevel, c *[9]int, level int) string {
	l := levels[level]
	if l == nil || l.format == "bullet" || l.format == "none" {
		return ""
	}
	text := l.text[:min(len(l.text), maxLabel)]
	for i := range 9 {
		if mark := "%" + strconv.Itoa(i+1); strings.Contains(text, mark) {
			format := "decimal"
			if levels[i] != nil && levels[i].format != "" {
				format = levels[i].format
			}
			text = strings.ReplaceAll(text, mark, numeral(format, max(c[i], 0)))
		}
	}
	return strings.TrimSpace(text[:min(len(text), maxLabel)])
}

// maxLabel bounds the number of an item, bytes: that of the ninth level, in Roman
// numerals, may take as much.
const maxLabel = 150

// numeral writes a number in a format of Word.
func numeral(format string, n int) string {
	switch format {
	case "lowerLetter", "upperLetter":
		if n < 1 {
			return ""
		}
		s := strings.Repeat(string(rune('a'+(n-1)%26)), min((n-1)/26+1, 10))
		if format == "upperLetter" {
			s = strings.ToUpper(s)
		}
		return s
	case "lowerRoman":
		return roman(n)
	case "upperRoman":
		return strings.ToUpper(roman(n))
	case "decimalZero":
		if n < 10 {
			return "0" + strconv.Itoa(n)
		}
	}
	return strconv.Itoa(n)
}

func roman(n int) string {
	if n < 1 || n > 3999 {
		return strconv.Itoa(n)
	}
	var b strings.Builder
	for _, d := range []struct {
		value int
		digit string
	}{{1000, "m"}, {900, "cm"}, {500, "d"}, {400, "cd"}, {100, "c"}, {90, "xc"}, {50, "l"}, {40, "xl"}, {10, "x"}, {9, "ix"}, {5, "v"}, {4, "iv"}, {1, "i"}} {
		for ; n >= d.value; n -= d.value {
			b.WriteString(d.digit)
		}
	}
	return b.String()
}

package extract

import (
	"errors"
	"net/url"
	"path"
	"strings"
)

// readEPUB reads an e-book, in the order of its spine.
func readEPUB(o *output, a *archive) error {
	book := ""
	err := a.xml("META-INF/container.xml", func(x *xmlReader, _ element) error {
		return x.find("rootfile", func(e element) error {
			if book == "" {
				book = e.attr("full-path")
			}
			return x.skip()
		})
	})
	if err != nil {
		return err
	}
	if !a.has(book) {
		return errMissing
	}
	if a.has("META-INF/encryption.xml") {
		rights, err := a.readAll("META-INF/encryption.xml")
		if err == nil && !strings.Contains(string(rights), "http://www.idpf.org/2008/embedding") && strings.Contains(string(rights), "CipherReference") {
			return unreadable("the e-book is protected against copying (DRM)")
		}
	}
	chapters, err := spine(a, book)
	if err != nil {
		return err
	}
	for _, chapter := range chapters {
		if !a.once(chapter) {
			continue
		}
		content, err := a.readAll(chapter)
		if errors.Is(err, errMissing) {
			continue
		}
		if err != nil {
			return err
		}
		encoding, err := detect(content)
		if err != nil {
			continue // a chapter that is no text, such as a picture
		}
		root, err := parseHTML(content, encoding)
		if err != nil {
			return err
		}
		if err := emitChapter(o, root); err != nil {
			return err
		}
	}
	return nil
}

// spine lists the files of a book in the order of reading.
func spine(a *archive, book string) (files []string, err error) {
	manifest := map[string]string{}
	err = a.xml(book, func(x *xmlReader, _ element) error {
		return x.each(func(e element) error {
			switch e.name() {
			case "manifest":
				return x.each(func(e element) error {
					if href, err := url.PathUnescape(e.attr("href")); err == nil {
						manifest[e.attr("id")] = path.Join(path.Dir(book), href)
					}
					return x.skip()
				}, nil)
			case "spine":
				return x.each(func(e element) error {
					if file := manifest[e.attr("idref")]; file != "" {
						files = append(files, file)
					}
					return x.skip()
				}, nil)
			}
			return x.skip()
		}, nil)
	})
	return files, err
}

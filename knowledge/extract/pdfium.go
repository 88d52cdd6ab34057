package extract

import (
	"errors"
	"strings"

	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
)

// pdfiumPages bounds the memory of PDFium, in WebAssembly's pages of 64 kB.
const pdfiumPages = 6 << 10

// readPDFium reads a PDF with Chrome's reader, compiled to WebAssembly: what
// goes wrong in it stays in its sandbox. It takes a second to start.
func readPDFium(o *output, content []byte) error {
	o.info.Reader = "pdfium"
	pool, err := webassembly.Init(webassembly.Config{
		MinIdle: 1, MaxIdle: 1, MaxTotal: 1,
		RuntimeConfig: wazero.NewRuntimeConfig().WithMemoryLimitPages(pdfiumPages).WithCloseOnContextDone(true),
	})
	if err != nil {
		return err
	}
	defer pool.Close()
	p, err := pool.GetInstanceWithContext(o.ctx)
	if err != nil {
		return err
	}
	doc, err := p.OpenDocument(&requests.OpenDocument{File: &content})
	if errors.Is(err, pdferrors.ErrPassword) || errors.Is(err, pdferrors.ErrSecurity) {
		return errPDFPassword
	}
	if err != nil {
		return err
	}
	count, err := p.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc.Document})
	if err != nil {
		return err
	}
	var w pageWriter
	for i := range count.PageCount {
		o.page = i + 1
		page, err := p.GetPageText(&requests.GetPageText{Page: requests.Page{
			ByIndex: &requests.PageByIndex{Document: doc.Document, Index: i},
		}})
		if o.ctx.Err() != nil {
			return o.ctx.Err()
		}
		if err != nil {
			continue // a broken page among good ones is left out
		}
		if err := w.prose(o, strings.ReplaceAll(page.Text, "\r\n", "\n")); err != nil {
			return err
		}
	}
	return nil
}

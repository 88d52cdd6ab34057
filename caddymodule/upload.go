package caddymodule

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/knowledge"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// uploadWait is how long the reply to an upload waits for the file to be
// searchable (contract, section 6).
const uploadWait = 25 * time.Second

// form is what an upload brings.
type form struct {
	name    string
	content []byte
	purpose string
}

// upload takes a file in, all or nothing.
func (a *App) upload(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, who caller) error {
	in, err := a.readForm(w, r, a.maxFileOf(who))
	if err != nil {
		return err
	}
	prepared, err := a.knowledge.Prepare(in.name, in.content)
	if err != nil {
		return unreadable(err)
	}
	file, err := a.createFile(r.Context(), who, store.File{
		ID: "file-" + rand.Text(), Name: in.name, Purpose: in.purpose,
		Bytes: int64(len(in.content)), Digest: sha256.Sum256(in.content), Created: time.Now(),
		Status: store.FileUploaded, Model: a.knowledge.Model(),
	}, in.content)
	if errors.Is(err, store.ErrExists) {
		return writeJSON(w, fileObject(file))
	}
	if errors.Is(err, store.ErrFilesOff) {
		return openai.StatusError(http.StatusNotImplemented, "This service keeps no files.")
	}
	var full *openai.Error
	if errors.As(err, &full) {
		return full
	}
	if err != nil {
		return &unavailable{err}
	}
	file.Status, err = a.ingest(r.Context(), newUpstream(r, next), who.tenant, file.ID, prepared)
	if err != nil {
		return err
	}
	return writeJSON(w, fileObject(file))
}

// ingest makes a file searchable. It answers after uploadWait at the latest;
// what isn't done by then goes on, and a failure is told with the file. An
// earlier failure, or the client leaving, takes the file away again.
func (a *App) ingest(ctx context.Context, via embed.Caller, tenant, id string, p *knowledge.Prepared) (store.FileStatus, error) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(a.shared.stopping, cancel)
	done := make(chan error, 1)
	a.shared.ingests.Add(1)
	a.shared.inUse.Add(1)
	finished := func() {
		unhook()
		cancel()
		a.shared.inUse.Done()
		a.shared.ingests.Done()
	}
	go func() { done <- a.knowledge.Ingest(work, via, tenant, id, p) }()

	timer := time.NewTimer(uploadWait)
	defer timer.Stop()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		cancel()
		<-done
		err = ctx.Err()
	case <-timer.C:
		go func() {
			defer finished()
			a.report(work, tenant, id, <-done)
		}()
		return store.FileUploaded, nil
	}
	defer finished()
	if err == nil {
		return store.FileProcessed, nil
	}
	if e := a.shared.DeleteFile(context.WithoutCancel(ctx), tenant, id); e != nil && !errors.Is(e, store.ErrNotFound) {
		a.requestLogger(ctx).Error("could not remove a file that was not indexed", zap.String("file", id), zap.Error(e))
	}
	return "", uploadError(err)
}

// report tells with the file how an upload ended that its client no longer
// waits for.
func (a *App) report(ctx context.Context, tenant, id string, err error) {
	if err == nil || errors.Is(err, store.ErrDeleted) {
		return
	}
	a.requestLogger(ctx).Error("a file could not be indexed", zap.String("file", id), zap.Error(err))
	err = a.shared.FinishFile(context.WithoutCancel(ctx), tenant, id, store.FileError, uploadError(err).Error())
	if err != nil && !errors.Is(err, store.ErrDeleted) {
		a.requestLogger(ctx).Error("could not mark a file as failed", zap.String("file", id), zap.Error(err))
	}
}

// uploadError is what the client is told of a failed upload.
func uploadError(err error) error {
	var refused *embed.StatusError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return openai.StatusError(http.StatusUnauthorized, "The model router refused the key in Authorization. The file was not kept.")
	case errors.Is(err, knowledge.ErrEmbedding):
		return openai.StatusError(http.StatusBadGateway, "The file could not be embedded by the model router. It was not kept; please try again.")
	case errors.Is(err, store.ErrDeleted):
		return openai.StatusError(http.StatusConflict, "The file was deleted while it was being indexed.")
	case errors.Is(err, context.Canceled):
		return openai.StatusError(http.StatusServiceUnavailable, "The file could not be indexed: interrupted; upload it again.")
	}
	return &unavailable{err}
}

// unreadable is what the client is told of a file that can't be read.
func unreadable(err error) error {
	var unsupported *knowledge.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		return &openai.Error{
			Status: http.StatusUnsupportedMediaType, Type: openai.TypeInvalidRequest, Param: "file",
			Message: upperFirst(err.Error()) + ".",
		}
	case errors.Is(err, knowledge.ErrNoText):
		return openai.Invalid("file", "%s.", upperFirst(err.Error()))
	}
	return err
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

const (
	// maxField bounds the other fields of an upload's form, in bytes.
	maxField = 1 << 10
	// maxFileName is what file systems allow. The name goes with every passage.
	maxFileName = 255
)

// readForm reads the form of an upload, and checks it.
func (a *App) readForm(w http.ResponseWriter, r *http.Request, maxFile int64) (*form, error) {
	const envelope = 1 << 20 // what a form takes beside the file
	if err := openBody(w, r, maxFile+envelope); err != nil {
		return nil, err
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, openai.Invalid("file", "Expected a multipart/form-data body with the fields 'file' and 'purpose'.")
	}
	in := new(form)
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return in, in.check()
		}
		if err != nil {
			return nil, bodyError(err)
		}
		if err := in.take(p, maxFile); err != nil {
			return nil, err
		}
	}
}

// take reads one field.
func (in *form) take(p *multipart.Part, maxFile int64) error {
	name, most := p.FormName(), int64(maxField)
	if name == "file" {
		most = maxFile
	}
	content, err := io.ReadAll(io.LimitReader(p, most+1))
	if err != nil {
		return bodyError(err)
	}
	if int64(len(content)) > most {
		return &openai.Error{
			Status: http.StatusRequestEntityTooLarge, Type: openai.TypeInvalidRequest, Param: name,
			Message: "The field '" + name + "' is too large.",
		}
	}
	switch {
	case name == "file" && in.name != "" || name == "purpose" && in.purpose != "":
		return openai.Invalid(name, "The field '%s' is given more than once.", name)
	case name == "file" && p.FileName() == "":
		return openai.Invalid("file", "The field 'file' must be a file with a name.")
	case name == "file" && len(p.FileName()) > maxFileName:
		return openai.Invalid("file", "The name of the file is longer than %d bytes.", maxFileName)
	case name == "file":
		in.name, in.content = p.FileName(), content
	case name == "purpose":
		in.purpose = string(content)
	case strings.HasPrefix(name, "expires_after"):
		return openai.Invalid("expires_after", "Files don't expire here: leave 'expires_after' out and delete the file when it is no longer needed.")
	default:
		return openai.Invalid(name, "Unrecognized parameter: '%s'.", name)
	}
	return nil
}

func (in *form) check() error {
	switch {
	case in.name == "":
		return openai.Invalid("file", "Missing required parameter: 'file'.")
	case in.purpose == "":
		return openai.Invalid("purpose", "Missing required parameter: 'purpose'.")
	case in.purpose != "assistants" && in.purpose != "user_data":
		return openai.Invalid("purpose", "Invalid value for 'purpose': this service keeps files for 'assistants' and 'user_data' only.")
	}
	return nil
}

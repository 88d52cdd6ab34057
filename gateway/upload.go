package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/gateway/internal/admission"
	"github.com/backstory-proxy/backstory/gateway/internal/body"
	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/internal/respond"
	"github.com/backstory-proxy/backstory/knowledge"
	"github.com/backstory-proxy/backstory/knowledge/extract"
	"github.com/backstory-proxy/backstory/knowledge/sandbox"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// form is what an upload brings.
type form struct {
	name    string
	content *spool // nil where there is none; to be closed
	purpose string
	claim   *admission.Claim // on the disk, for the content
	room    func(int64) error
}

// upload takes a file in, all or nothing.
func (fa *filesAPI) upload(c call) error {
	w, r, router, who := c.w, c.r, c.router, c.who
	if fa.shared.filesOff { // before its content is read
		return errFilesOff()
	}
	in, err := fa.readForm(c, fa.largest(who))
	late := false
	defer func() {
		if !late { // or else it is needed longer
			in.content.close()
		}
	}()
	if err != nil {
		return err
	}
	wait := time.NewTimer(fa.options.UploadWait)
	defer wait.Stop()
	work := fa.begin(r.Context())
	var prepared *knowledge.Prepared
	read := make(chan error, 1)
	go func() {
		var err error
		prepared, err = fa.knowledge.Prepare(work.ctx, who.scope.Tenant, in.name, in.content)
		read <- err
	}()
	select {
	case err = <-read:
	case <-r.Context().Done():
		work.cancel()
		err = <-read
	case <-wait.C:
		late = true
		return fa.uploadLate(w, r, router, who, in, work, func() (*knowledge.Prepared, error) { err := <-read; return prepared, err })
	}
	if err != nil {
		work.end()
		if errors.Is(err, sandbox.ErrBusy) {
			w.Header().Set("Retry-After", busyRetry)
		}
		return uploadError(err)
	}
	file, err := fa.keepFile(r.Context(), who, in, prepared.Chunks)
	if err != nil {
		prepared.Close()
		work.end()
		if errors.Is(err, store.ErrExists) {
			return respond.JSON(w, fileObject(file))
		}
		return err
	}
	in.content.close() // it may be large, and isn't needed any more
	in.content = nil
	file.Status, err = fa.ingest(r.Context(), upstream.New(r, router), who.scope, file.ID, prepared, work, wait.C)
	if err != nil {
		return err
	}
	object := fileObject(file)
	object.Metadata = &openai.FileMetadata{Type: prepared.Info.Type, Reader: prepared.Info.Reader}
	return respond.JSON(w, object)
}

// uploadLate answers an upload that takes long to read: it is kept, and read
// and indexed behind the client's back. It closes the upload.
func (fa *filesAPI) uploadLate(w http.ResponseWriter, r *http.Request, router http.Handler, who caller, in *form, work *job, prepared func() (*knowledge.Prepared, error)) error {
	file, err := fa.keepFile(r.Context(), who, in, 0) // how many chunks it has shows later
	if err != nil {
		work.cancel()
		if p, err := prepared(); err == nil {
			p.Close()
		}
		in.content.close()
		work.end()
		if errors.Is(err, store.ErrExists) {
			return respond.JSON(w, fileObject(file))
		}
		return err
	}
	via := upstream.New(r, router)
	go func() {
		defer work.end()
		p, err := prepared()
		in.content.close()
		if err == nil {
			if err = fa.checkChunks(work.ctx, who, p.Chunks); err != nil {
				p.Close()
			} else {
				err = fa.knowledge.Ingest(work.ctx, via, who.scope, file.ID, p)
			}
		}
		fa.report(work.ctx, who.scope, file.ID, err)
	}()
	return respond.JSON(w, fileObject(file))
}

// keepFile stores a file that is not indexed yet, and comes to so many chunks. With
// store.ErrExists comes the file that is there already.
func (fa *filesAPI) keepFile(ctx context.Context, who caller, in *form, chunks int) (store.File, error) {
	file, err := fa.create(ctx, who, store.File{
		ID: "file-" + rand.Text(), Name: in.name, Purpose: in.purpose,
		Bytes: in.content.size, Digest: in.content.digest, Created: time.Now(),
		Status: store.FileUploaded, Model: fa.knowledge.Model(),
	}, chunks, in.content.reader())
	switch {
	case err == nil || errors.Is(err, store.ErrExists):
		return file, err
	case errors.Is(err, store.ErrFilesOff):
		return file, errFilesOff()
	}
	var full *openai.Error
	if errors.As(err, &full) {
		return file, full
	}
	return file, &unavailable{err}
}

func errFilesOff() error {
	return openai.StatusError(http.StatusNotImplemented, "This service keeps no files.")
}

// job is work on an upload that may outlive its request, but not the process.
type job struct {
	ctx    context.Context
	cancel context.CancelFunc
	end    func() // once, when the work is done
}

// begin begins work on an upload.
func (fa *filesAPI) begin(ctx context.Context) *job {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(fa.shared.stopping, cancel)
	fa.shared.ingests.Add(1)
	fa.shared.inUse.Add(1)
	return &job{work, cancel, func() {
		unhook()
		cancel()
		fa.shared.inUse.Done()
		fa.shared.ingests.Done()
	}}
}

// ingest makes a file searchable. It answers at the latest when enough is over;
// what isn't done by then goes on, and a failure is told with the file. An
// earlier failure, or the client leaving, takes the file away again.
func (fa *filesAPI) ingest(ctx context.Context, via embed.Caller, scope store.Scope, id string, p *knowledge.Prepared, work *job, enough <-chan time.Time) (store.FileStatus, error) {
	done := make(chan error, 1)
	go func() { done <- fa.knowledge.Ingest(work.ctx, via, scope, id, p) }()

	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		work.cancel()
		<-done
		err = ctx.Err()
	case <-enough:
		go func() {
			defer work.end()
			fa.report(work.ctx, scope, id, <-done)
		}()
		return store.FileUploaded, nil
	}
	defer work.end()
	if err == nil {
		return store.FileProcessed, nil
	}
	if e := fa.shared.DeleteFile(context.WithoutCancel(ctx), scope, id); e != nil && !errors.Is(e, store.ErrNotFound) {
		fa.requestLogger(ctx).Error("could not remove a file that was not indexed", zap.String("file", id), zap.Error(e))
	}
	return "", uploadError(err)
}

// report tells with the file how an upload ended that its client no longer
// waits for.
func (fa *filesAPI) report(ctx context.Context, scope store.Scope, id string, err error) {
	if err == nil || errors.Is(err, store.ErrDeleted) {
		return
	}
	fa.requestLogger(ctx).Error("a file could not be indexed", zap.String("file", id), zap.Error(err))
	err = fa.shared.FinishFile(context.WithoutCancel(ctx), scope, id, store.FileError, uploadError(err).Error())
	if err != nil && !errors.Is(err, store.ErrDeleted) {
		fa.requestLogger(ctx).Error("could not mark a file as failed", zap.String("file", id), zap.Error(err))
	}
}

// requestLogger logs on behalf of a request.
func (fa *filesAPI) requestLogger(ctx context.Context) *zap.Logger {
	return fa.logger.With(zap.String("request_id", fa.options.RequestID(ctx)))
}

// uploadError is what the client is told of a failed upload.
func uploadError(err error) error {
	var refused *embed.StatusError
	var unreadable *extract.Error
	var ours *openai.Error
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &unreadable):
		e := openai.Invalid("file", "%s.", upperFirst(unreadable.Message))
		if unreadable.Unsupported {
			e.Status = http.StatusUnsupportedMediaType
		}
		return e
	case errors.Is(err, sandbox.ErrTenantBusy):
		return openai.StatusError(http.StatusTooManyRequests, "Too many of your files are waiting to be read. Please upload this one again later.")
	case errors.Is(err, sandbox.ErrBusy):
		return openai.StatusError(http.StatusServiceUnavailable, "Too many files are waiting to be read. Please upload this one again later.")
	case errors.Is(err, sandbox.ErrFailed):
		return err // nobody's but ours
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

// busyRetry is after how many seconds to upload a file again where too many wait
// to be read: most take less than one each.
const busyRetry = "10"

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

const (
	// maxField bounds the other fields of an upload's form, in bytes.
	maxField = 1 << 10
	// maxFileName is what file systems allow. The name goes with every chunk.
	maxFileName = 255
)

// readForm reads the form of an upload, and checks it. The content of what it
// returns is to be closed, also with an error.
func (fa *filesAPI) readForm(c call, maxFile int64) (*form, error) {
	const envelope = 1 << 20 // what a form takes beside the file
	r, in := c.r, &form{claim: fa.shared.uploads.Claim(c.who.scope.Tenant, body.Small)}
	in.room = c.room(in.claim)
	if err := body.Open(c.w, r, maxFile+envelope); err != nil {
		return in, err
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return in, openai.Invalid("file", "Expected a multipart/form-data body with the fields 'file' and 'purpose'.")
	}
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			_, _ = r.Body.Read(make([]byte, 1)) // the end of a body in chunks, or the connection is closed
			return in, in.check()
		}
		if err != nil {
			return in, body.Error(err)
		}
		if err := in.take(p, maxFile); err != nil {
			return in, err
		}
	}
}

// take reads one field.
func (in *form) take(p *multipart.Part, maxFile int64) error {
	name := p.FormName()
	switch {
	case (name == "file" && in.content != nil) || (name == "purpose" && in.purpose != ""):
		return openai.Invalid(name, "The field '%s' is given more than once.", name)
	case name == "file" && p.FileName() == "":
		return openai.Invalid("file", "The field 'file' must be a file with a name.")
	case name == "file" && len(p.FileName()) > maxFileName:
		return openai.Invalid("file", "The name of the file is longer than %d bytes.", maxFileName)
	case strings.HasPrefix(name, "expires_after"):
		return openai.Invalid("expires_after", "Files don't expire here: leave 'expires_after' out and delete the file when it is no longer needed.")
	case name == "file":
		return in.takeFile(p, maxFile)
	case name != "purpose":
		return openai.Invalid(name, "Unrecognized parameter: '%s'.", name)
	}
	content, err := io.ReadAll(io.LimitReader(p, maxField+1))
	if err != nil {
		return body.Error(err)
	}
	in.purpose = string(content)
	return checkField(name, int64(len(content)), maxField)
}

// takeFile reads the file.
func (in *form) takeFile(p *multipart.Part, most int64) (err error) {
	in.name = p.FileName()
	in.content, err = newSpool(p, most, in.claim, in.room)
	var refused *openai.Error
	switch {
	case errors.Is(err, errSpool):
		return err // nobody's but ours
	case errors.As(err, &refused):
		return refused
	case err != nil:
		return body.Error(err)
	}
	return checkField("file", in.content.size, most)
}

// checkField refuses a field that is too long.
func checkField(name string, size, most int64) error {
	if size <= most {
		return nil
	}
	return &openai.Error{
		Status: http.StatusRequestEntityTooLarge, Type: openai.TypeInvalidRequest, Param: name,
		Message: fmt.Sprintf("The field '%s' is larger than %d bytes.", name, most),
	}
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

package podstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/streams"
)

// maxLog is the maximum size of a log buffered for TailLines.
const maxLog = 64 << 20

func (h *Handler) logs(w http.ResponseWriter, req *http.Request, pod streams.Pod) error {
	opts, err := h.logOptions(req.URL.Query(), pod.Name)
	if err != nil {
		return err
	}
	if h.Handlers.Logs == nil {
		return notSet("Logs")
	}
	reader, err := h.Handlers.Logs(req.Context(), pod, opts)
	if err != nil {
		return err
	}
	if closer, isCloser := reader.(io.Closer); isCloser {
		defer closer.Close() //nolint:errcheck // already read
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	if reader == nil {
		return nil
	}
	lines := &lineFilter{reader: bufio.NewReader(reader), opts: opts}
	if opts.Follow {
		lines.copyAll(w, func() { _ = http.NewResponseController(w).Flush() })
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(lines, maxLog))
	if opts.TailLines != nil {
		text = lastLines(text, *opts.TailLines)
	}
	if opts.LimitBytes != nil && int64(len(text)) > *opts.LimitBytes {
		text = text[:*opts.LimitBytes]
	}
	_, _ = w.Write(text)
	return nil
}

func (h *Handler) logOptions(query url.Values, name string) (streams.LogOptions, error) {
	var opts streams.LogOptions
	var errs []error
	flag := func(key string) bool {
		value, err := strconv.ParseBool(query.Get(key))
		return value && err == nil
	}
	number := func(key string) *int64 {
		text := query.Get(key)
		if text == "" {
			return nil
		}
		value, err := strconv.ParseInt(text, 10, 64)
		errs = append(errs, err)
		return &value
	}
	opts.Follow = flag("follow")
	opts.Previous = flag("previous")
	opts.Timestamps = flag("timestamps")
	opts.TailLines = number("tailLines")
	opts.LimitBytes = number("limitBytes")
	seconds := number("sinceSeconds")
	if seconds != nil {
		since := h.Now().Add(-time.Duration(*seconds) * time.Second)
		opts.SinceTime = &since
	}
	if text := query.Get("sinceTime"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		errs = append(errs, err)
		opts.SinceTime = &since
	}
	if err := errors.Join(errs...); err != nil {
		return opts, apierrors.NewBadRequest(err.Error())
	}
	var invalid field.ErrorList
	if opts.TailLines != nil && *opts.TailLines < 0 {
		invalid = append(invalid, field.Invalid(field.NewPath("tailLines"), *opts.TailLines, "must be greater than or equal to 0"))
	}
	if opts.LimitBytes != nil && *opts.LimitBytes < 1 {
		invalid = append(invalid, field.Invalid(field.NewPath("limitBytes"), *opts.LimitBytes, "must be greater than 0"))
	}
	if seconds != nil && query.Get("sinceTime") != "" {
		invalid = append(invalid, field.Forbidden(field.NewPath(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
	}
	if len(invalid) > 0 {
		return opts, apierrors.NewInvalid(schema.GroupKind{Kind: "PodLogOptions"}, name, invalid)
	}
	return opts, nil
}

// lineFilter drops lines before SinceTime, and removes times unless Timestamps is set.
type lineFilter struct {
	reader *bufio.Reader
	opts   streams.LogOptions
	rest   []byte
}

func (f *lineFilter) next() ([]byte, error) {
	for {
		line, err := f.reader.ReadBytes('\n')
		if len(line) == 0 {
			return nil, err
		}
		stamp, text, found := bytes.Cut(line, []byte(" "))
		written, parseErr := time.Parse(time.RFC3339Nano, string(stamp))
		if !found || parseErr != nil {
			return line, err
		}
		if f.opts.SinceTime != nil && written.Before(*f.opts.SinceTime) {
			if err != nil {
				return nil, err
			}
			continue
		}
		if f.opts.Timestamps {
			return line, err
		}
		return text, err
	}
}

// Read implements io.Reader.
func (f *lineFilter) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		line, err := f.next()
		if len(line) == 0 {
			return 0, err
		}
		f.rest = line
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// copyAll writes each line as it comes.
func (f *lineFilter) copyAll(w io.Writer, flush func()) {
	flush()
	for {
		line, err := f.next()
		if len(line) > 0 {
			if _, writeErr := w.Write(line); writeErr != nil {
				return
			}
			flush()
		}
		if err != nil {
			return
		}
	}
}

func lastLines(text []byte, count int64) []byte {
	at := len(text)
	for ; count > 0 && at > 0; count-- {
		at = bytes.LastIndexByte(text[:at-1], '\n') + 1
	}
	return text[at:]
}

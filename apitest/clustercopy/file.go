package clustercopy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/unstructured"
)

// A file is gzip over lines of JSON: the header, and then a line for each object.
const fileFormat = "anykind clustercopy 1"

// Limits of Load. etcd limits objects to 1.5 MiB, in a denser form for built-in kinds.
const (
	maxLine = 64 << 20
	maxFile = 8 << 30
)

// header is the first line of a file.
type header struct {
	Format          string       `json:"format"`
	Version         version.Info `json:"version"`
	TakenAt         time.Time    `json:"takenAt"`
	ResourceVersion string       `json:"resourceVersion,omitempty"`
	Resources       []Resource   `json:"resources,omitempty"`
	Omitted         []Omission   `json:"omitted,omitempty"`
	Objects         int          `json:"objects"` // the number of lines after the header
}

// Save writes the copy, compressed. It is as confidential as the objects. [Copy.WriteFile] creates a
// file with mode 0600.
func (c *Copy) Save(w io.Writer) error {
	if err := c.save(w); err != nil {
		return fmt.Errorf("save the copy: %w", err)
	}
	return nil
}

func (c *Copy) save(w io.Writer) error {
	compressed := gzip.NewWriter(w)
	lines := bufio.NewWriterSize(compressed, 64<<10)
	first, err := json.Marshal(header{fileFormat, c.Version, c.TakenAt, c.ResourceVersion, c.Resources, c.Omitted, len(c.Objects)})
	if err != nil {
		return err
	}
	_, _ = lines.Write(first) // the error is that of Flush
	for _, obj := range c.Objects {
		if err := writeLine(lines, obj); err != nil {
			return fmt.Errorf("%s: %w", obj, err)
		}
	}
	_ = lines.WriteByte('\n')
	return errors.Join(lines.Flush(), compressed.Close())
}

// writeLine writes a line break and an object without line breaks.
func writeLine(lines *bufio.Writer, obj *unstructured.Lazy) error {
	data, err := obj.MarshalJSON() // of a Lazy received as protobuf, too
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return errors.New("the object is empty")
	}
	if bytes.IndexByte(data, '\n') >= 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, data); err != nil {
			return err
		}
		data = compact.Bytes()
	}
	_ = lines.WriteByte('\n')
	_, err = lines.Write(data)
	return err
}

// Load reads the form of [Copy.Save]. A truncated or changed file is an error. Memory is bounded by the size of the objects, 8 GiB
// in all.
func Load(r io.Reader) (*Copy, error) { return load(r, maxLine, maxFile) }

func load(r io.Reader, line, file int64) (*Copy, error) {
	c, err := read(r, line, file)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the file ends too early: %w", io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, fmt.Errorf("load a copy: %w", err)
	}
	return c, nil
}

func read(r io.Reader, line, file int64) (*Copy, error) {
	compressed, err := gzip.NewReader(r)
	if errors.Is(err, gzip.ErrHeader) {
		return nil, fmt.Errorf("not a copy of a cluster: %w", err)
	}
	if err != nil {
		return nil, err
	}
	lines := &lineReader{reader: bufio.NewReaderSize(compressed, 64<<10), line: line, rest: file}
	text, err := lines.next()
	if err != nil {
		return nil, err
	}
	var h header
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	if h.Format != fileFormat {
		return nil, fmt.Errorf("the format is %q, not %q", h.Format, fileFormat)
	}
	c := &Copy{Version: h.Version, TakenAt: h.TakenAt, ResourceVersion: h.ResourceVersion, Resources: h.Resources, Omitted: h.Omitted}
	for i := range h.Objects {
		text, err := lines.next()
		if err != nil {
			return nil, err
		}
		obj, err := unstructured.DecodeLazy(text)
		if err != nil {
			return nil, fmt.Errorf("object %d of %d: %w", i+1, h.Objects, err)
		}
		c.Objects = append(c.Objects, obj)
	}
	if _, err := lines.reader.ReadByte(); !errors.Is(err, io.EOF) { // the end has the checksum
		if err == nil {
			err = fmt.Errorf("there is more than the %d objects of the header", h.Objects)
		}
		return nil, err
	}
	return c, nil
}

// lineReader reads lines up to a length, and up to a total.
type lineReader struct {
	reader     *bufio.Reader
	line, rest int64
	buffer     []byte
}

// next returns the next line without its break. The result is valid until the next call. Without a line break it returns io.EOF.
func (l *lineReader) next() ([]byte, error) {
	l.buffer = l.buffer[:0]
	for {
		part, err := l.reader.ReadSlice('\n')
		l.buffer = append(l.buffer, part...)
		l.rest -= int64(len(part))
		switch {
		case int64(len(l.buffer)) > l.line:
			return nil, fmt.Errorf("a line is longer than %d bytes", l.line)
		case l.rest < 0:
			return nil, errors.New("the objects are larger than the limit")
		case err == nil:
			return l.buffer[:len(l.buffer)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// WriteFile saves the copy to a file with mode 0600. The complete file replaces an existing file.
func (c *Copy) WriteFile(path string) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".clustercopy-*") // mode 0600
	if err != nil {
		return fmt.Errorf("save the copy: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if err := errors.Join(c.Save(file), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("save the copy: %w", err)
	}
	return nil
}

// ReadFile loads a copy from a file.
func ReadFile(path string) (*Copy, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load a copy: %w", err)
	}
	defer file.Close()
	c, err := Load(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

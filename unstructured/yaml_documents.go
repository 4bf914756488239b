package unstructured

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

type document struct {
	text []byte
	line int // of the stream, counted from 1
	skip int // offset in text of the first line with content
}

func (d document) hasContent() bool { return d.skip < len(d.text) }

// content returns the document from its first character of content on.
func (d document) content() document {
	rest := d.text[d.skip:]
	return d.from(len(d.text) - len(bytes.TrimLeft(rest, "\ufeff \t\r\n")))
}

func (d document) from(offset int) document {
	return document{text: d.text[offset:], line: d.line + bytes.Count(d.text[:offset], []byte("\n"))}
}

// documentReader splits a stream at the marker lines --- and "..." (https://yaml.org/spec/1.2.2/#912-document-markers). These
// lines have no further meaning.
type documentReader struct {
	src    *bufio.Reader
	line   int    // lines read
	marker []byte // first line of the next document
}

const bom = "\ufeff"

// next reads the next document with content. It returns io.EOF itself at the end of the stream.
func (s *documentReader) next() (one document, err error) {
	for err == nil && !one.hasContent() {
		one, err = s.read()
	}
	return one, err
}

// read reads a document. Without content, skip is len(text).
func (s *documentReader) read() (document, error) {
	one := document{line: s.line + 1}
	isMarked := s.marker != nil
	if isMarked {
		one.line = s.line
		one.add(s.marker, hasMore(s.marker))
		s.marker = nil
	}
	for {
		line, err := s.readLine()
		if err != nil && (err != io.EOF || len(one.text) == 0) {
			return document{}, err
		}
		switch {
		case err == io.EOF || isMarker(line, "..."):
			return one, nil
		case !isMarker(line, "---"):
			isDirective := line[0] == '%' && !isMarked && !one.hasContent()
			one.add(line, !isBlank(line) && !isDirective)
		case isMarked || one.hasContent():
			s.marker = line
			return one, nil
		default:
			isMarked = true
			one.add(line, hasMore(line))
		}
	}
}

func (d *document) add(line []byte, isContent bool) {
	isContent = isContent || d.hasContent()
	d.text = append(d.text, line...)
	if !isContent {
		d.skip = len(d.text)
	}
}

// readLine reads a line with its end. The last line may lack an end. After it, readLine returns io.EOF.
func (s *documentReader) readLine() ([]byte, error) {
	line, err := s.src.ReadBytes('\n')
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("reading YAML behind line %d: %w", s.line, err)
	}
	if len(line) == 0 {
		return nil, io.EOF
	}
	if s.line++; s.line == 1 {
		line = bytes.TrimPrefix(line, []byte(bom))
		if len(line) == 0 {
			return []byte("\n"), nil
		}
	}
	return line, nil
}

// isMarker reports whether a line is a marker, optionally followed by white space.
func isMarker(line []byte, marker string) bool {
	rest, found := bytes.CutPrefix(bytes.TrimPrefix(line, []byte(bom)), []byte(marker))
	return found && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// hasMore reports whether a document begins on its marker's line.
func hasMore(marker []byte) bool {
	return !isBlank(bytes.TrimPrefix(bytes.TrimPrefix(marker, []byte(bom)), []byte("---")))
}

// isBlank reports whether there is nothing but white space and a comment.
func isBlank(line []byte) bool {
	rest := bytes.TrimLeft(line, bom+" \t\r\n")
	return len(rest) == 0 || rest[0] == '#'
}

package unstructured

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// documents splits a stream at its markers, the lines --- and "...", which mean nothing else wherever they stand
// (https://yaml.org/spec/1.2.2/#912-document-markers).
type documents struct {
	src  *bufio.Reader
	line int    // lines read
	held []byte // a marker that begins the next document
}

const bom = "\ufeff"

func newDocuments(r io.Reader) documents { return documents{src: bufio.NewReader(r)} }

// next reads the next document that has content. It fails with io.EOF itself behind the last.
func (s *documents) next() (document, error) {
	for {
		one, err := s.read()
		if err != nil || one.skip < len(one.text) {
			return one, err
		}
	}
}

// read reads a document, whose skip is all of it if there is no content.
func (s *documents) read() (document, error) {
	one := document{line: s.line + 1}
	isMarked := s.held != nil
	if isMarked {
		one.line = s.line
		one.add(s.held, hasMore(s.held))
		s.held = nil
	}
	for {
		line, err := s.readLine()
		if err != nil && (err != io.EOF || len(one.text) == 0) {
			return document{}, err
		}
		hasContent := one.skip < len(one.text)
		switch {
		case err == io.EOF || isMarker(line, "..."):
			return one, nil
		case !isMarker(line, "---"):
			isDirective := line[0] == '%' && !isMarked && !hasContent
			one.add(line, !isBlank(line) && !isDirective)
		case isMarked || hasContent:
			s.held = line
			return one, nil
		default:
			isMarked = true
			one.add(line, hasMore(line))
		}
	}
}

func (d *document) add(line []byte, isContent bool) {
	hadContent := d.skip < len(d.text)
	d.text = append(d.text, line...)
	if !hadContent && !isContent {
		d.skip = len(d.text)
	}
}

// readLine reads a line with its end. The end of the stream ends a line, and is io.EOF behind it.
func (s *documents) readLine() ([]byte, error) {
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

// isMarker tells whether a line is a marker, which white space or nothing follows.
func isMarker(line []byte, marker string) bool {
	rest, found := bytes.CutPrefix(bytes.TrimPrefix(line, []byte(bom)), []byte(marker))
	return found && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// hasMore tells whether a document begins on its marker's line.
func hasMore(marker []byte) bool {
	return !isBlank(bytes.TrimPrefix(bytes.TrimPrefix(marker, []byte(bom)), []byte("---")))
}

// isBlank tells whether there is nothing but white space and a comment.
func isBlank(line []byte) bool {
	rest := bytes.TrimLeft(line, bom+" \t\r\n")
	return len(rest) == 0 || rest[0] == '#'
}

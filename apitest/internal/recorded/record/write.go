package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/anykind/anykind/apitest/internal/recorded"
)

// writeGroups writes resources.json with a resource per line, for readable diffs between releases.
func writeGroups(all *recorded.Groups) error {
	var out lines
	out.add(`{"version":%s,`, all.Version)
	out.add(`"groups":[`)
	for g, group := range all.Groups {
		out.add(`{"name":%s,"priority":%s,"versions":[`, group.Name, group.Priority)
		for v, version := range group.Versions {
			out.add(`{"name":%s,"priority":%s,"resources":[`, version.Name, version.Priority)
			for r, resource := range version.Resources {
				out.add(`%s`+comma(r, len(version.Resources)), resource)
			}
			out.add(`]}` + comma(v, len(group.Versions)))
		}
		out.add(`]}` + comma(g, len(all.Groups)))
	}
	out.add(`]}`)
	return out.write("resources.json")
}

// writeColumns writes columns.json.gz with a column per line.
func writeColumns(all recorded.Columns) error {
	var out lines
	out.add(`{`)
	paths := slices.Sorted(maps.Keys(all))
	for p, path := range paths {
		out.add(`%s:[`, path)
		for c, column := range all[path] {
			out.add(`%s`+comma(c, len(all[path])), column)
		}
		out.add(`]` + comma(p, len(paths)))
	}
	out.add(`}`)
	return out.writeCompressed("columns.json.gz")
}

// lines is JSON with line breaks chosen by the caller.
type lines struct {
	buf bytes.Buffer
	err error
}

// add adds a line. args are encoded as JSON.
func (l *lines) add(format string, args ...any) {
	for i, arg := range args {
		text, err := json.Marshal(arg)
		if err != nil && l.err == nil {
			l.err = err
		}
		args[i] = text
	}
	fmt.Fprintf(&l.buf, format+"\n", args...)
}

func (l *lines) write(name string) error {
	if !json.Valid(l.buf.Bytes()) {
		return fmt.Errorf("write %s: not valid JSON", name)
	}
	return l.writeFile(name)
}

func (l *lines) writeFile(name string) error {
	if l.err != nil {
		return l.err
	}
	return os.WriteFile(filepath.Join(dir, name), l.buf.Bytes(), 0o644)
}

func (l *lines) writeCompressed(name string) error {
	var buf bytes.Buffer
	writer, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := writer.Write(l.buf.Bytes()); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	compressed := lines{buf: buf, err: l.err}
	return compressed.writeFile(name)
}

func comma(i, count int) string {
	if i == count-1 {
		return ""
	}
	return ","
}

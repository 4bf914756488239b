package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/anykind/anykind/internal/atomicfile"
)

const indexFile = "index.json"

// folder keeps documents: the index, and a file for each document, named for its path and hash. Files are replaced atomically, so
// processes may share a folder.
type folder struct{ dir string }

// savedIndex is the content of the index.
type savedIndex struct {
	ETag      string `json:"etag,omitempty"` // of the server's list
	Documents index  `json:"documents"`
}

// newServerFolder returns the folder of a server below kubectl's cache folder. It returns nil if the server's folder would be
// outside of dir.
func newServerFolder(dir, serverURL string) *folder {
	_, host, found := strings.Cut(serverURL, "://")
	if !found {
		host = serverURL
	}
	host = regexp.MustCompile(`[^\w/.]`).ReplaceAllString(host, "_")
	if host = filepath.FromSlash(strings.TrimSuffix(host, "/")); !filepath.IsLocal(host) {
		return nil
	}
	return &folder{dir: filepath.Join(dir, "openapi", host)}
}

func (f *folder) readIndex() (*savedIndex, error) {
	data, err := os.ReadFile(filepath.Join(f.dir, indexFile))
	if err != nil {
		return nil, err
	}
	saved := &savedIndex{}
	if err := json.Unmarshal(data, saved); err != nil {
		return nil, fmt.Errorf("%s: %w", indexFile, err)
	}
	if saved.Documents == nil {
		return nil, fmt.Errorf("%s: no documents", indexFile)
	}
	return saved, nil
}

func (f *folder) writeIndex(saved *savedIndex) error {
	data, err := json.MarshalIndent(saved, "", "  ")
	if err == nil {
		err = os.MkdirAll(f.dir, 0o750)
	}
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(f.dir, indexFile), append(data, '\n'), 0o640, nil)
}

func (f *folder) readDocument(path, hash string) (*Document, error) {
	name, err := documentFile(path, hash)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		return nil, err
	}
	document, err := ParseDocument(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return document, nil
}

// writeDocument writes a document and removes the files of its path with outdated hashes.
func (f *folder) writeDocument(path, hash string, data []byte) error {
	name, err := documentFile(path, hash)
	if err == nil {
		err = os.MkdirAll(f.dir, 0o750)
	}
	if err == nil {
		err = atomicfile.Write(filepath.Join(f.dir, name), data, 0o640, nil)
	}
	if err != nil {
		return err
	}
	prefix, _, _ := strings.Cut(name, hashSeparator)
	old, err := filepath.Glob(filepath.Join(f.dir, prefix+hashSeparator+"*"))
	for _, file := range old {
		if filepath.Base(file) != name {
			if removed := os.Remove(file); !errors.Is(removed, fs.ErrNotExist) {
				err = errors.Join(err, removed)
			}
		}
	}
	return err
}

const (
	hashSeparator = "@"
	maxHash       = 32 // characters of a hash in a file name
)

// documentFile returns the name of a document's file. It fails for paths and hashes of unexpected characters, which might lead
// out of the folder.
func documentFile(path, hash string) (string, error) {
	if !regexp.MustCompile(`^apis?/[a-z0-9./-]+$`).MatchString(path) || !regexp.MustCompile(`^[A-Za-z0-9_=-]*$`).MatchString(hash) {
		return "", fmt.Errorf("document %q with hash %q: not a file name", path, hash)
	}
	return strings.ReplaceAll(path, "/", "_") + hashSeparator + hash[:min(len(hash), maxHash)] + ".json", nil
}

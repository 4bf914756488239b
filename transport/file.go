package transport

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// fileLifetime is how long what was read from a file is used before the file is read again, as in client-go.
const fileLifetime = time.Minute

// renewedFile is a file that somebody else renews, or fixed bytes. It is safe for concurrent use.
type renewedFile struct {
	path string // "" where data is fixed

	mu   sync.Mutex
	data []byte
	read time.Time
}

// inlineOrFile is data where there is some, else what the file holds, else nil.
func inlineOrFile(data []byte, path string) *renewedFile {
	if len(data) > 0 {
		path = ""
	}
	return &renewedFile{path: path, data: data}
}

// content is what the file holds. While it cannot be read, or is empty, what it held last goes on.
func (f *renewedFile) content(now time.Time) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" || (!f.read.IsZero() && now.Sub(f.read) < fileLifetime) {
		return f.data, nil
	}
	data, err := os.ReadFile(f.path)
	switch {
	case err == nil && len(data) > 0:
		f.data, f.read = data, now
	case len(f.data) > 0:
	case err != nil:
		return nil, err
	default:
		return nil, fmt.Errorf("%s is empty", f.path)
	}
	return f.data, nil
}

// forget makes the next call of content read the file.
func (f *renewedFile) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = time.Time{}
}

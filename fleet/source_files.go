package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// pollInterval is the time between two reads of files.
const pollInterval = 5 * time.Second

// Contexts returns a source of the contexts of a kubeconfig: the file at path or, for "", the kubeconfig of [transport.Load]. Names of
// contexts are names of clusters. The kubeconfig is read again every five seconds. While it cannot be read, the clusters stay. A
// context that names a missing file is a cluster that fails with the reason, until the file exists.
func Contexts(path string) Source {
	return func(ctx context.Context, clusters *Clusters) error {
		var last *kubeconfig.File
		failures := map[string]string{} // errors of contexts, which may name missing files
		return poll(ctx, func() error {
			file, err := transport.LoadKubeconfig(path)
			if err != nil {
				return err
			}
			isSame := last != nil && reflect.DeepEqual(file, last)
			for name := range file.Contexts {
				lastFailure := failures[name]
				if isSame && lastFailure == "" {
					continue
				}
				cfg, err := transport.Load(ctx, &transport.LoadOptions{Kubeconfig: file, Context: name})
				if ctx.Err() != nil {
					return retry.ContextError(ctx)
				}
				failures[name] = errorText(err)
				if !isSame || failures[name] != lastFailure {
					clusters.putLoaded(name, cfg, err)
				}
			}
			if isSame {
				return nil
			}
			if last != nil {
				for name := range last.Contexts {
					if _, exists := file.Contexts[name]; !exists {
						delete(failures, name)
						clusters.Remove(name)
					}
				}
			}
			last = file
			clusters.Synced()
			return nil
		})
	}
}

// putLoaded sets a cluster, or the error of its configuration.
func (c *Clusters) putLoaded(name string, cfg *transport.Config, err error) {
	if err != nil {
		c.SetError(name, err)
		return
	}
	c.Set(name, cfg)
}

// errorText returns the text of an error, and "" for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// poll calls read, and again every pollInterval, until it fails or ctx ends.
func poll(ctx context.Context, read func() error) error {
	for {
		if err := read(); err != nil {
			return err
		}
		if err := retry.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// extensions are dropped from file names.
var extensions = []string{".yaml", ".yml", ".json", ".kubeconfig", ".conf", ".config"}

// Folder returns a source of the kubeconfigs in a folder, such as a mounted Secret: each file is a cluster, with the kubeconfig's current
// context. The name of the file without the extension .yaml, .yml, .json, .kubeconfig, .conf or .config is the name of the cluster.
// Folders and files that begin with a dot are ignored. The folder is read every five seconds: new, changed and removed files are
// noticed. An invalid file is a cluster that fails with the reason. The files may name programs to run and files to read. A
// missing file is looked up again with the folder.
func Folder(path string) Source {
	return func(ctx context.Context, clusters *Clusters) error {
		known := map[string]folderFile{} // by name of the cluster
		return poll(ctx, func() error {
			found, err := readFolder(path)
			if err != nil {
				return err
			}
			for name, file := range found {
				last, isKnown := known[name]
				isSame := isKnown && last.path == file.path && last.hash == file.hash
				if isSame && last.failed == "" {
					continue
				}
				cfg, err := loadFile(ctx, file.path)
				if ctx.Err() != nil {
					return retry.ContextError(ctx)
				}
				file.failed = errorText(err)
				found[name] = file
				if !isSame || file.failed != last.failed {
					clusters.putLoaded(name, cfg, err)
				}
			}
			for name := range known {
				if _, exists := found[name]; !exists {
					clusters.Remove(name)
				}
			}
			known = found
			clusters.Synced()
			return nil
		})
	}
}

// folderFile is a file with the hash of its content.
type folderFile struct {
	path   string
	hash   [sha256.Size]byte
	failed string // the error of its load, which is repeated: the file may name a missing file
}

// readFolder returns the files of a folder by the names of their clusters.
func readFolder(path string) (map[string]folderFile, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfigs: %w", err)
	}
	found := map[string]folderFile{}
	for _, entry := range entries { // sorted by name
		full := filepath.Join(path, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		info, err := os.Stat(full) // of the target of a link
		if errors.Is(err, os.ErrNotExist) || err == nil && info.IsDir() {
			continue
		}
		content, err := os.ReadFile(full)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		file := folderFile{path: full} // of an unreadable file, without a hash
		if err == nil {
			file.hash = sha256.Sum256(content)
		}
		name := entry.Name()
		if extension := filepath.Ext(name); slices.Contains(extensions, extension) {
			name = strings.TrimSuffix(name, extension)
		}
		if first, exists := found[name]; exists {
			return nil, fmt.Errorf("read kubeconfigs: %s and %s name the same cluster (rename one)", first.path, full)
		}
		found[name] = file
	}
	return found, nil
}

func loadFile(ctx context.Context, path string) (*transport.Config, error) {
	return transport.Load(ctx, &transport.LoadOptions{Path: path})
}

package discovery

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/atomicfile"
	"github.com/anykind/anykind/internal/parallel"
)

// maxDiskAge is the maximum age of a cache file by modification time, as in kubectl.
const maxDiskAge = 6 * time.Hour

// maxDiskReaders bounds the goroutines that read the files of a cache.
const maxDiskReaders = 4

const (
	groupsFile    = "servergroups.json"
	resourcesFile = "serverresources.json"
	// noResourcesFile replaces resourcesFile for a version without resources. kubectl does not cache such a version and
	// requests it each time. Without this file the cache would never be complete.
	noResourcesFile = "noresources.json"
)

// diskCache reads and writes kubectl's discovery cache of a server, in the layout of client-go's discovery/cached/disk:
// servergroups.json, and serverresources.json in a folder for each group version. It is safe for concurrent use, also by several
// processes: every file is replaced atomically.
type diskCache struct {
	dir string // the server's folder
}

// newDiskCache returns the cache of a server below dir. dir need not exist. It returns nil if the server's folder would be
// outside of dir.
func newDiskCache(dir, serverURL string) *diskCache {
	host := filepath.FromSlash(hostFolder(serverURL))
	if !filepath.IsLocal(host) {
		return nil
	}
	return &diskCache{dir: filepath.Join(dir, "discovery", host)}
}

// hostFolder returns kubectl's folder name for a server (computeDiscoverCacheDir in cli-runtime). The regular expression has
// the same bug as kubectl's: it keeps parentheses.
func hostFolder(serverURL string) string {
	host := strings.Replace(strings.Replace(serverURL, "https://", "", 1), "http://", "", 1)
	return regexp.MustCompile(`[^(\w/.)]`).ReplaceAllString(host, "_")
}

// DefaultCacheDir returns kubectl's cache folder: $KUBECACHEDIR, or .kube/cache in the user's home. It fails without a home
// directory. The folder need not exist.
func DefaultCacheDir() (string, error) {
	if dir := os.Getenv("KUBECACHEDIR"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find kubectl's cache: %w (set KUBECACHEDIR)", err)
	}
	return filepath.Join(home, ".kube", "cache"), nil
}

// folder returns the folder of a group version. Names leading out of the cache folder are rejected.
func (d *diskCache) folder(gv schema.GroupVersion) (string, error) {
	if gv.Group != "" && !isFolderName(gv.Group) || !isFolderName(gv.Version) {
		return "", fmt.Errorf("group version %q is not a folder name", gv)
	}
	return filepath.Join(d.dir, gv.Group, gv.Version), nil
}

func isFolderName(name string) bool {
	return filepath.IsLocal(name) && name != "." && !strings.ContainsAny(name, `/\`)
}

// read returns the cached snapshot. TakenAt is the time of the oldest file. It fails if the cache is missing, expired,
// incomplete, corrupt or unreadable.
func (d *diskCache) read(now time.Time) (*Snapshot, error) {
	files := &validFiles{now: now, oldest: now}
	path := filepath.Join(d.dir, groupsFile)
	data, err := files.read(path)
	if err != nil {
		return nil, err
	}
	groups, err := decodeGroupList(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// kubectl omits stale versions. Groups without versions are dropped.
	snapshot := &Snapshot{Groups: slices.DeleteFunc(groups, func(group Group) bool { return len(group.Versions) == 0 })}
	if len(snapshot.Groups) == 0 {
		return nil, fmt.Errorf("%s: no groups", path)
	}
	if err := validateNames(snapshot.Groups); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := d.readVersions(snapshot, files); err != nil {
		return nil, err
	}
	snapshot.TakenAt = files.oldest
	return snapshot, nil
}

// readVersions reads the resources of each version of a snapshot in parallel.
func (d *diskCache) readVersions(snapshot *Snapshot, files *validFiles) error {
	var gvs []schema.GroupVersion
	var versions []*Version
	for gv, version := range snapshot.Versions() {
		gvs = append(gvs, gv)
		versions = append(versions, version)
	}
	workers := min(runtime.GOMAXPROCS(0), maxDiskReaders)
	errs := make([]error, workers)
	parallel.Do(workers, workers, func(k int) {
		in := newInterner()
		for i := k; i < len(gvs) && errs[k] == nil; i += workers {
			versions[i].Resources, errs[k] = d.readVersion(files, gvs[i], in)
		}
	})
	return cmp.Or(errs...)
}

func (d *diskCache) readVersion(files *validFiles, gv schema.GroupVersion, in *interner) ([]*Resource, error) {
	folder, err := d.folder(gv)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, resourcesFile)
	data, err := files.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		path = filepath.Join(folder, noResourcesFile)
		data, err = files.read(path)
	}
	if err != nil {
		return nil, err
	}
	resources, groupVersion, err := decodeResourceList(data, gv, in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if groupVersion != gv.String() {
		return nil, fmt.Errorf("%s: group version is %q", path, groupVersion)
	}
	if err := validateResources(resources); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return resources, nil
}

// validFiles reads unexpired files and records the oldest modification time. It is safe for concurrent use.
type validFiles struct {
	now    time.Time
	mu     sync.Mutex
	oldest time.Time
}

func (f *validFiles) read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	// After a clock has been set back, a file may be from the future. Unlike kubectl, such a file is limited to maxDiskAge, too:
	// otherwise it would be valid for too long.
	modified := info.ModTime()
	if age := f.now.Sub(modified); age > maxDiskAge || age < -maxDiskAge {
		return nil, fmt.Errorf("%s: expired: written %s ago", path, age.Round(time.Second))
	}
	f.mu.Lock()
	if modified.Before(f.oldest) {
		f.oldest = modified
	}
	f.mu.Unlock()
	return os.ReadFile(path)
}

// write caches the snapshot with requestedAt as the modification time. Like kubectl, it omits stale versions, the resources of
// unreadable versions, and resources of unknown kind except for their subresources. After an error the cache may contain both
// old and new files, each of them complete.
func (d *diskCache) write(snapshot *Snapshot, requestedAt time.Time) error {
	if len(snapshot.Groups) == 0 {
		return nil
	}
	for gv, version := range snapshot.Versions() {
		if version.Healthy() {
			if err := d.writeVersion(gv, version.Resources, requestedAt); err != nil {
				return err
			}
		}
	}
	// servergroups.json is written last: it must not list versions without files.
	return writeDocument(d.dir, groupsFile, groupListOf(snapshot.Groups), requestedAt)
}

func (d *diskCache) writeVersion(gv schema.GroupVersion, resources []*Resource, requestedAt time.Time) error {
	folder, err := d.folder(gv)
	if err != nil {
		return err
	}
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(),
		APIResources: entriesOf(gv, resources),
	}
	name := resourcesFile
	other := noResourcesFile
	if len(list.APIResources) == 0 {
		name, other = other, name
	}
	if err := writeDocument(folder, name, list, requestedAt); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(folder, other)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeDocument writes a JSON file with kubectl's permissions: readable by the user's group. If the content is unchanged, it
// only updates the modification time, at a tenth of the cost.
func writeDocument(folder, name string, document any, requestedAt time.Time) error {
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	path := filepath.Join(folder, name)
	data = append(data, '\n')
	if hasContent(path, data) && os.Chtimes(path, requestedAt, requestedAt) == nil {
		return nil
	}
	return atomicfile.Write(path, data, 0o660, func(temp string) error {
		return errors.Join(os.Chmod(temp, 0o660), os.Chtimes(temp, requestedAt, requestedAt)) // whatever the umask
	})
}

func hasContent(path string, data []byte) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false
	}
	content, err := os.ReadFile(path)
	return err == nil && bytes.Equal(content, data)
}

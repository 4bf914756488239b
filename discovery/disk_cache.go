package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxDiskAge is the age of a file's modification time up to which kubectl trusts its cache.
const maxDiskAge = 6 * time.Hour

const (
	groupsFile    = "servergroups.json"
	resourcesFile = "serverresources.json"
	// noResourcesFile replaces resourcesFile for a version without resources. kubectl neither writes nor looks for it and
	// sends a request each time; without it the cache would never be complete here.
	noResourcesFile = "noresources.json"
)

// diskCache reads and writes kubectl's discovery cache of one server in kubectl's layout (client-go's discovery/cached/disk):
// servergroups.json, and serverresources.json in a folder for each group version. It is safe for concurrent use, also with
// other programs: every file is replaced as a whole.
type diskCache struct {
	dir string // the server's folder
}

// newDiskCache returns the cache of one server in the folder dir, which need not exist, and nil if the server's folder would
// be outside of it.
func newDiskCache(dir, serverURL string) *diskCache {
	host := filepath.FromSlash(hostFolder(serverURL))
	if !filepath.IsLocal(host) {
		return nil
	}
	return &diskCache{dir: filepath.Join(dir, "discovery", host)}
}

// hostFolder returns a server's folder as kubectl names it (cli-runtime's computeDiscoverCacheDir), including the
// parentheses that kubectl keeps by oversight.
func hostFolder(serverURL string) string {
	host := strings.Replace(strings.Replace(serverURL, "https://", "", 1), "http://", "", 1)
	return regexp.MustCompile(`[^(\w/.)]`).ReplaceAllString(host, "_")
}

// DefaultCacheDir returns the folder of kubectl's cache: $KUBECACHEDIR, or else .kube/cache in the user's home. It fails if
// there is no home, and does not check whether the folder exists.
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

// folder returns the folder of a group version. Names from a server or a file must not lead elsewhere.
func (d *diskCache) folder(gv schema.GroupVersion) (string, error) {
	if gv.Group != "" && !isFolderName(gv.Group) || !isFolderName(gv.Version) {
		return "", fmt.Errorf("group version %q is not a folder name", gv)
	}
	return filepath.Join(d.dir, gv.Group, gv.Version), nil
}

func isFolderName(name string) bool {
	return filepath.IsLocal(name) && name != "." && !strings.ContainsAny(name, `/\`)
}

// read returns the cached snapshot, taken when the oldest of its files was requested. The snapshot is nil if and only if
// there is an error: the cache is missing, expired, incomplete, corrupt or unreadable, and a request is needed.
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
	// kubectl lists a group without its stale versions.
	snapshot := &Snapshot{Groups: slices.DeleteFunc(groups, func(group Group) bool { return len(group.Versions) == 0 })}
	if len(snapshot.Groups) == 0 {
		return nil, fmt.Errorf("%s: no groups", path)
	}
	for gv, version := range snapshot.Versions() {
		if version.Resources, err = d.readVersion(files, gv); err != nil {
			return nil, err
		}
	}
	if err := validateGroups(snapshot.Groups); err != nil {
		return nil, fmt.Errorf("%s: %w", d.dir, err)
	}
	interner := newInterner()
	for _, version := range snapshot.Versions() {
		interner.resources(version.Resources)
	}
	snapshot.TakenAt = files.oldest
	return snapshot, nil
}

func (d *diskCache) readVersion(files *validFiles, gv schema.GroupVersion) ([]*Resource, error) {
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
	var list metav1.APIResourceList
	if err := decodeKind(data, "APIResourceList", &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if list.GroupVersion != gv.String() {
		return nil, fmt.Errorf("%s: group version is %q", path, list.GroupVersion)
	}
	return resourcesOf(gv, list.APIResources), nil
}

// validFiles reads files that are valid now, and records the oldest modification time.
type validFiles struct{ now, oldest time.Time }

func (f *validFiles) read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	// kubectl trusts any file of the future. Here it may come from a clock that was set back a little; one further ahead
	// would be valid for too long.
	modified := info.ModTime()
	if age := f.now.Sub(modified); age > maxDiskAge || age < -maxDiskAge {
		return nil, fmt.Errorf("%s: expired: written %s ago", path, age.Round(time.Second))
	}
	if modified.Before(f.oldest) {
		f.oldest = modified
	}
	return os.ReadFile(path)
}

// write caches the snapshot as requested at a time. Like kubectl, it leaves out stale versions, the resources of unreadable
// ones, and resources of unknown kind except for their subresources. After an error older files remain with newer ones,
// each of them complete.
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
	// The groups are written last: they must not list versions that have no file yet.
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
	name, other := resourcesFile, noResourcesFile
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

// writeDocument writes JSON like kubectl, readable by the user's group. A file that is up to date only gets a new
// modification time, at a tenth of the cost.
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
	return replaceFile(path, data, 0o660, func(temp string) error {
		return errors.Join(os.Chmod(temp, 0o660), os.Chtimes(temp, requestedAt, requestedAt)) // this mode, whatever the umask is
	})
}

func hasContent(path string, data []byte) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false
	}
	content, err := os.ReadFile(path)
	return err == nil && bytes.Equal(content, data)
}

// replaceFile replaces a file as a whole, or leaves it as it was. prepare is called for the new file before it takes the place
// of the old one.
func replaceFile(path string, data []byte, mode fs.FileMode, prepare func(temp string) error) (err error) {
	// Unlike os.CreateTemp, this applies the umask to the mode.
	name := fmt.Sprintf("%s.%d", path, rand.Uint64()) //nolint:gosec // unique, not secret
	temp, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = prepare(name)
	}
	if err == nil {
		err = os.Rename(name, path)
	}
	return err
}

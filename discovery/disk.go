package discovery

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// diskCacheLife is how long after its modification kubectl trusts a file of its cache.
const diskCacheLife = 6 * time.Hour

const (
	groupsFile    = "servergroups.json"
	resourcesFile = "serverresources.json"
	// noResourcesFile stands in for a resourcesFile without resources. kubectl keeps none of these and asks again each
	// time, and so it does not look for this name either; we, who would find the cache incomplete for ever, do.
	noResourcesFile = "noresources.json"
)

// diskCache is what kubectl keeps on disk of one server's discovery. It is read and written in kubectl's own layout, so
// that both share it: servergroups.json, and serverresources.json in a folder for each group version (client-go's
// discovery/cached/disk). It is safe for concurrent use, with other programs too: each file is replaced as a whole.
type diskCache struct {
	// dir is the server's own folder; "" where its name leads out of the cache.
	dir string
}

// newDiskCache is the cache of one server in the folder dir, which need not exist; see [DefaultCacheDir].
func newDiskCache(dir, serverURL string) *diskCache {
	host := filepath.FromSlash(hostFolder(serverURL))
	if !filepath.IsLocal(host) {
		return &diskCache{}
	}
	return &diskCache{dir: filepath.Join(dir, "discovery", host)}
}

var notInFolderNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^(\w/.)]`)
})

// hostFolder names a server's folder as kubectl does (cli-runtime's computeDiscoverCacheDir); the parentheses, which
// that leaves alone by oversight, included.
func hostFolder(serverURL string) string {
	host := strings.Replace(strings.Replace(serverURL, "https://", "", 1), "http://", "", 1)
	return notInFolderNames().ReplaceAllString(host, "_")
}

// DefaultCacheDir is the folder in which kubectl caches what servers told it: $KUBECACHEDIR, or else .kube/cache in the
// user's home. It fails where there is no home, and does not look whether the folder exists.
func DefaultCacheDir() (string, error) {
	if dir := os.Getenv("KUBECACHEDIR"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find kubectl's cache: set KUBECACHEDIR: %w", err)
	}
	return filepath.Join(home, ".kube", "cache"), nil
}

// folder is where a group version's files are. Names that the server, or somebody's file, made up must not lead
// elsewhere.
func (d *diskCache) folder(gv schema.GroupVersion) (string, error) {
	if gv.Group != "" && !isFolderName(gv.Group) || !isFolderName(gv.Version) {
		return "", fmt.Errorf("the group version %q cannot name a folder", gv)
	}
	return filepath.Join(d.dir, gv.Group, gv.Version), nil
}

func isFolderName(name string) bool {
	return filepath.IsLocal(name) && name != "." && !strings.ContainsAny(name, `/\`)
}

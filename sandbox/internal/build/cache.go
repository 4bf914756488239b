package build

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// CacheEnv names the environment variable that moves the cache folder.
const CacheEnv = "ANYKIND_SANDBOX_CACHE"

// Cache is the folder that keeps built binaries between runs:
//
//	bin/NAME-VERSION-OS-ARCH         finished binaries
//	module/NAME-VERSION/             the generated modules they are built in
//	build.lock                       held while building
//	.building-*/                     what a build under way writes
//	run/NAME/                        locks, log and record of a background cluster
type Cache struct{ Dir string }

// OpenCache returns the cache in dir or, for "", where CacheEnv says or in the
// user's cache folder.
func OpenCache(dir string) (*Cache, error) {
	if dir == "" {
		dir = os.Getenv(CacheEnv)
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("finding a folder for built binaries: %w; set %s", err, CacheEnv)
		}
		dir = filepath.Join(user, "anykind", "sandbox")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding a folder for built binaries: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder for built binaries: %w; set %s to one you may write to", err, CacheEnv)
	}
	return &Cache{Dir: dir}, nil
}

// Path is where b is, or will be.
func (c *Cache) Path(b Binary) string {
	version := b.Version
	if b.Revision > 0 {
		version += fmt.Sprintf("+patch%d", b.Revision)
	}
	return filepath.Join(c.Dir, "bin", fmt.Sprintf("%s-%s-%s-%s", b.Name, version, runtime.GOOS, runtime.GOARCH))
}

// StagesPath is where the behaviour of kwok's fake nodes and pods is kept.
func (c *Cache) StagesPath(kwok Binary) string { return c.Path(kwok) + "-stages.yaml" }

// Has reports whether b is built.
func (c *Cache) Has(b Binary) bool {
	info, err := os.Stat(c.Path(b))
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o100 != 0
}

func (c *Cache) moduleDir(b Binary) string {
	name := b.Name
	if b.Staging { // one for all programs of a version, which share their dependencies
		name = "kubernetes"
	}
	return filepath.Join(c.Dir, "module", name+"-"+b.Version)
}

func (c *Cache) lockPath() string { return filepath.Join(c.Dir, "build.lock") }

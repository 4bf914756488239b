package discovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// read returns what is cached, as of the time when the server was asked for the oldest part of it. The snapshot is nil
// if and only if the error is not: the cache is absent, expired, incomplete, corrupt or unreadable, all of which mean
// that the server must be asked, and none of which is an error to a user. The error says which, for a log.
func (d *diskCache) read(now time.Time) (*Snapshot, error) {
	if d.dir == "" {
		return nil, errNoFolder
	}
	r := &diskReader{now: now, oldest: now}
	data, err := r.file(filepath.Join(d.dir, groupsFile))
	if err != nil {
		return nil, err
	}
	listed, err := decodeGroupList(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(d.dir, groupsFile), err)
	}
	snapshot := &Snapshot{}
	for _, group := range listed {
		for i := range group.Versions {
			version := &group.Versions[i]
			version.Resources, err = d.readVersion(r, schema.GroupVersion{Group: group.Name, Version: version.Name})
			if err != nil {
				return nil, err
			}
		}
		if len(group.Versions) > 0 { // kubectl lists a group all of whose versions are stale, without them
			snapshot.Groups = append(snapshot.Groups, group)
		}
	}
	if len(snapshot.Groups) == 0 { // which no server has, and nobody caches
		return nil, fmt.Errorf("%s: it lists no group", filepath.Join(d.dir, groupsFile))
	}
	if err := validateGroups(snapshot.Groups); err != nil {
		return nil, fmt.Errorf("%s: %w", d.dir, err)
	}
	snapshot.Taken = r.oldest
	return snapshot, nil
}

func (d *diskCache) readVersion(r *diskReader, gv schema.GroupVersion) ([]*Resource, error) {
	folder, err := d.folder(gv)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, resourcesFile)
	data, err := r.file(path)
	if errors.Is(err, fs.ErrNotExist) {
		path = filepath.Join(folder, noResourcesFile)
		data, err = r.file(path)
	}
	if err != nil {
		return nil, err
	}
	var list cachedList
	if err := unmarshalRepetitive(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if list.Kind != "APIResourceList" || list.GroupVersion != gv.String() {
		return nil, fmt.Errorf("%s: it is a %q of %q", path, list.Kind, list.GroupVersion)
	}
	return resourcesOf(gv, list.entries()), nil
}

// cachedList is an APIResourceList.
type cachedList struct {
	metav1.TypeMeta `json:",inline"`

	GroupVersion string `json:"groupVersion"`
	Resources    []struct {
		Name               string       `json:"name"`
		SingularName       repeated     `json:"singularName"`
		Namespaced         bool         `json:"namespaced"`
		Group              repeated     `json:"group"`
		Version            repeated     `json:"version"`
		Kind               repeated     `json:"kind"`
		Verbs              repeatedList `json:"verbs"`
		ShortNames         []string     `json:"shortNames"`
		Categories         repeatedList `json:"categories"`
		StorageVersionHash string       `json:"storageVersionHash"`
	} `json:"resources"`
}

func (l *cachedList) entries() []metav1.APIResource {
	entries := make([]metav1.APIResource, len(l.Resources))
	for i := range l.Resources {
		r := &l.Resources[i]
		entries[i] = metav1.APIResource{
			Name: r.Name, SingularName: string(r.SingularName), Namespaced: r.Namespaced,
			Group: string(r.Group), Version: string(r.Version), Kind: string(r.Kind),
			Verbs: metav1.Verbs(r.Verbs), ShortNames: r.ShortNames, Categories: r.Categories,
			StorageVersionHash: r.StorageVersionHash,
		}
	}
	return entries
}

// diskReader reads files that are still valid now and remembers how old the oldest was.
type diskReader struct{ now, oldest time.Time }

func (r *diskReader) file(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no file", path)
	}
	// kubectl trusts files of the future, too. A clock that was set back a little makes them; further ahead they would
	// stay valid for too long.
	modified := info.ModTime()
	if age := r.now.Sub(modified); age > diskCacheLife || age < -diskCacheLife {
		return nil, fmt.Errorf("%s: expired: it was written %s ago", path, age.Round(time.Second))
	}
	if modified.Before(r.oldest) {
		r.oldest = modified
	}
	return os.ReadFile(path)
}

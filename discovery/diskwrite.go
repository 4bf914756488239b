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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errNoFolder = errors.New("the server's URL cannot name a folder of the cache")

// write caches the snapshot, whose life begins when the server was last asked and said so. As with kubectl, stale
// versions, the resources of failing ones and resources of no known kind, other than their subresources, stay out. An
// error leaves older files beside newer ones, each of them whole; discovery works without.
func (d *diskCache) write(snapshot *Snapshot, asked time.Time) error {
	if d.dir == "" {
		return errNoFolder
	}
	list := groupListOf(snapshot.Groups)
	if len(list.Groups) == 0 {
		return nil
	}
	for g := range snapshot.Groups {
		group := &snapshot.Groups[g]
		for v := range group.Versions {
			if version := &group.Versions[v]; version.Healthy() {
				gv := schema.GroupVersion{Group: group.Name, Version: version.Name}
				if err := d.writeVersion(gv, version.Resources, asked); err != nil {
					return fmt.Errorf("cache %s: %w", gv, err)
				}
			}
		}
	}
	// The groups come last, for they must not name what is not there yet.
	if err := writeDocument(d.dir, groupsFile, list, asked); err != nil {
		return fmt.Errorf("cache the groups: %w", err)
	}
	return nil
}

func (d *diskCache) writeVersion(gv schema.GroupVersion, resources []*Resource, asked time.Time) error {
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
	if err := writeDocument(folder, name, list, asked); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(folder, other)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// groupListOf is what [decodeGroupList] reads.
func groupListOf(groups []Group) *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, group := range groups {
		item := metav1.APIGroup{Name: group.Name}
		for _, version := range group.Versions {
			if version.Stale { // listed, each kubectl would ask for it again and complain
				continue
			}
			gv := schema.GroupVersion{Group: group.Name, Version: version.Name}
			item.Versions = append(item.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: version.Name})
		}
		if len(item.Versions) > 0 {
			item.PreferredVersion = item.Versions[0]
		}
		list.Groups = append(list.Groups, item)
	}
	return list
}

// entriesOf is what [resourcesOf] reads. As in client-go, subresources have the singular of their resource, and a
// resource without a kind is there only through its subresources.
func entriesOf(gv schema.GroupVersion, resources []*Resource) []metav1.APIResource {
	var entries []metav1.APIResource
	add := func(entry metav1.APIResource, kind schema.GroupVersionKind) {
		entry.Kind = kind.Kind
		if kind.GroupVersion() != gv {
			entry.Group, entry.Version = kind.Group, kind.Version
		}
		entries = append(entries, entry)
	}
	for _, r := range resources {
		entry := metav1.APIResource{Name: r.GVR.Resource, SingularName: r.Singular, Namespaced: r.Namespaced}
		if r.GVK.Kind != "" {
			whole := entry
			whole.Verbs, whole.ShortNames, whole.Categories = r.Verbs, r.ShortNames, r.Categories
			whole.StorageVersionHash = r.StorageVersionHash
			add(whole, r.GVK)
		}
		for _, sub := range r.Subresources {
			part := entry
			part.Name, part.Verbs = r.GVR.Resource+"/"+sub.Name, sub.Verbs
			add(part, sub.GVK)
		}
	}
	return entries
}

// writeDocument writes as kubectl does: JSON in a line, for the user and his group. Most often nothing has changed, and
// only the file's time is set, which costs a tenth.
func writeDocument(folder, name string, document any, asked time.Time) error {
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	path := filepath.Join(folder, name)
	data = append(data, '\n')
	if holds(path, data) && os.Chtimes(path, asked, asked) == nil {
		return nil
	}
	return replaceFile(path, data, writeOptions{mode: 0o660, ignoreUmask: true, modified: asked})
}

// holds says that a file already has this text.
func holds(path string, data []byte) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && bytes.Equal(text, data)
}

type writeOptions struct {
	mode fs.FileMode
	// ignoreUmask gives the file exactly mode.
	ignoreUmask bool
	modified    time.Time // zero for now
}

// replaceFile puts a whole file in the place of another, or leaves that as it was.
func replaceFile(path string, data []byte, opts writeOptions) (err error) {
	temp, err := createTemp(path, opts.mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if opts.ignoreUmask {
		if err := os.Chmod(temp.Name(), opts.mode); err != nil {
			return err
		}
	}
	if err := os.Chtimes(temp.Name(), opts.modified, opts.modified); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// createTemp creates a new file beside path. Unlike os.CreateTemp it lets the umask decide about its mode.
func createTemp(path string, mode fs.FileMode) (*os.File, error) {
	for range 100 {
		file, err := os.OpenFile(fmt.Sprintf("%s.%d", path, rand.Uint32()), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // unique, not secret
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
	return nil, fmt.Errorf("create a file beside %s: %w", path, fs.ErrExist)
}

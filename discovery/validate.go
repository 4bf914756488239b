package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxName bounds every name from a server, such as a group, resource, kind or category.
	maxName = validation.DNS1123SubdomainMaxLength
	// maxRejected bounds Snapshot.Rejected.
	maxRejected = 100
)

// validateGroup validates the name of a group; "" is the core group.
func validateGroup(name string) error {
	if name == "" || len(validation.IsDNS1123Subdomain(name)) == 0 {
		return nil
	}
	return fmt.Errorf("invalid group name %s", quoted(name))
}

// validateVersion validates the name of a version. Versions of aggregated APIs need not look like v1.
func validateVersion(name string) error {
	if isSegment(name) {
		return nil
	}
	return fmt.Errorf("invalid version name %s", quoted(name))
}

// validateResource validates every name of a resource. Names outside of request paths are validated, too, because they are
// displayed.
func validateResource(r *Resource) error {
	if !isSegment(r.GVR.Resource) {
		return fmt.Errorf("invalid resource name %s", quoted(r.GVR.Resource))
	}
	err := cmp.Or(
		validateKind(r.GVK, r.GVR.Group), validateWords("singular", r.Singular), validateWords("hash", r.StorageVersionHash),
		validateWords("short name", r.ShortNames...), validateWords("category", r.Categories...), validateWords("verb", r.Verbs...),
	)
	for i := 0; i < len(r.Subresources) && err == nil; i++ {
		err = validateSubresource(&r.Subresources[i], r.GVR.Group)
	}
	if err != nil {
		return fmt.Errorf("resource %s: %w", quoted(r.GVR.Resource), err)
	}
	return nil
}

func validateSubresource(s *Subresource, group string) error {
	for part := range strings.SplitSeq(s.Name, "/") { // some servers nest subresources
		if !isSegment(part) {
			return fmt.Errorf("invalid subresource name %s", quoted(s.Name))
		}
	}
	if err := cmp.Or(validateKind(s.GVK, group), validateWords("verb", s.Verbs...)); err != nil {
		return fmt.Errorf("subresource %s: %w", quoted(s.Name), err)
	}
	return nil
}

// validateKind validates a kind. group is a validated group and is not checked again.
func validateKind(kind schema.GroupVersionKind, group string) error {
	if kind.Group != group {
		if err := validateGroup(kind.Group); err != nil {
			return err
		}
	}
	return cmp.Or(validateWords("kind", kind.Kind), validateWords("version", kind.Version))
}

func validateWords(field string, words ...string) error {
	for _, word := range words {
		if !isWord(word) {
			return fmt.Errorf("invalid %s %s", field, quoted(word))
		}
	}
	return nil
}

// isSegment reports whether name is exactly one segment of a URL path. The resource names of metrics APIs contain other special
// characters.
func isSegment(name string) bool {
	return name != "" && name != "." && name != ".." && isWord(name) && !strings.ContainsAny(name, `/\%?#`)
}

// isWord reports whether a name is short and printable, without white space.
func isWord(name string) bool {
	if len(name) > maxName {
		return false
	}
	for i, r := range name {
		if r < utf8.RuneSelf && '!' <= r && r <= '~' {
			continue
		}
		if r < utf8.RuneSelf || !unicode.IsPrint(r) || r == utf8.RuneError && !strings.HasPrefix(name[i:], "\uFFFD") {
			return false
		}
	}
	return true
}

// rejectNames returns the groups and versions with valid, unique names, and an error for each rejected name.
func rejectNames(groups []Group) (valid []Group, rejected []error) {
	valid, rejected = keepUnique(groups, "group", func(g Group) string { return g.Name }, validateGroup)
	for i := range valid {
		var errs []error
		valid[i].Versions, errs = rejectVersions(valid[i].Versions)
		for _, err := range errs {
			rejected = append(rejected, fmt.Errorf("group %q: %w", valid[i].Name, err))
		}
	}
	return valid, rejected[:min(len(rejected), maxRejected)]
}

func rejectVersions(versions []Version) (valid []Version, rejected []error) {
	return keepUnique(versions, "version", func(v Version) string { return v.Name }, validateVersion)
}

func keepUnique[T any](items []T, what string, nameOf func(T) string, validate func(string) error) (kept []T, rejected []error) {
	seen := map[string]bool{}
	kept = items[:0]
	for _, item := range items {
		name := nameOf(item)
		err := validate(name)
		if err == nil && seen[name] {
			err = fmt.Errorf("%s %q: listed twice", what, name)
		}
		if err != nil {
			rejected = append(rejected, err)
			continue
		}
		seen[name] = true
		kept = append(kept, item)
	}
	return kept, rejected
}

// validateResources validates the resources of a version. A single invalid name makes the version unreadable.
func validateResources(resources []*Resource) error {
	seen := make(map[string]bool, len(resources))
	for _, resource := range resources {
		if err := validateResource(resource); err != nil {
			return err
		}
		if seen[resource.GVR.Resource] {
			return fmt.Errorf("resource %q: listed twice", resource.GVR.Resource)
		}
		seen[resource.GVR.Resource] = true
	}
	return nil
}

// validateNames validates the names of groups from a file, and of their versions.
func validateNames(groups []Group) error {
	if _, rejected := rejectNames(slices.Clone(groups)); len(rejected) > 0 {
		return rejected[0]
	}
	return nil
}

// validateGroups validates groups from a file, with their versions and resources.
func validateGroups(groups []Group) error {
	if err := validateNames(groups); err != nil {
		return err
	}
	for gv, version := range (&Snapshot{Groups: groups}).Versions() {
		if err := validateResources(version.Resources); err != nil {
			return fmt.Errorf("group %q: version %s: %w", gv.Group, gv.Version, err)
		}
	}
	return nil
}

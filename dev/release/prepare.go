package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// prepare commits and tags a release. After a failure it restores the previous commit and tags.
func prepare(ctx context.Context, root string, modules []*goModule, version string) error {
	temp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	proxy, err := newFileProxy(ctx, temp)
	if err != nil {
		return err
	}
	if err := prepareWith(ctx, root, modules, version, proxy); err != nil {
		return err
	}
	fmt.Printf("\nCommitted and tagged. To publish:\n\n%s", pushCommands(modules, version))
	return nil
}

// pushCommands returns the commands to publish a release. The tag of the main module comes last and alone: GitHub starts no
// workflow if more than three tags are pushed at once, and the workflow needs the tags of the programs' modules.
func pushCommands(modules []*goModule, version string) string {
	others := ""
	for _, m := range published(modules) {
		if m.path != rootPath {
			others += " " + m.tag(version)
		}
	}
	return fmt.Sprintf("\tgit push origin main%s\n\tgit push origin %s\n", others, version)
}

func prepareWith(ctx context.Context, root string, modules []*goModule, version string, proxy *fileProxy) error {
	before, err := startingPoint(ctx, root, modules, version)
	if err != nil {
		return err
	}
	var tags []string
	err = func() error {
		if err := commitRelease(ctx, root, modules, version, proxy); err != nil {
			return err
		}
		for _, m := range published(modules) {
			if _, err := git(ctx, root, "tag", "-a", "-m", m.path+" "+version, m.tag(version)); err != nil {
				return err
			}
			tags = append(tags, m.tag(version))
		}
		return nil
	}()
	if err == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if len(tags) > 0 {
		_, tagErr := git(ctx, root, append([]string{"tag", "-d"}, tags...)...)
		err = errors.Join(err, tagErr)
	}
	_, resetErr := git(ctx, root, "reset", "--hard", before)
	return errors.Join(err, resetErr)
}

// startingPoint validates the version and the state of the checkout, and returns its commit.
func startingPoint(ctx context.Context, root string, modules []*goModule, version string) (string, error) {
	if semver.Canonical(version) != version || semver.Build(version) != "" {
		return "", fmt.Errorf("version %q is not vMAJOR.MINOR.PATCH", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return "", fmt.Errorf("version %s needs module paths that end in /%s", version, major)
	}
	changes, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return "", err
	}
	if changes != "" {
		return "", fmt.Errorf("the checkout has changes that are not committed:\n%s", changes)
	}
	last, err := lastVersion(ctx, root)
	if err != nil {
		return "", err
	}
	if last != "" && semver.Compare(version, last) <= 0 {
		return "", fmt.Errorf("version %s is not above %s, the last one", version, last)
	}
	changes, err = incompatibleChanges(ctx, root, published(modules), last)
	if err != nil {
		return "", err
	}
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	if err := checkChanges(changes, last, version, changelogSection(string(changelog), "Unreleased")); err != nil {
		return "", err
	}
	return git(ctx, root, "rev-parse", "HEAD")
}

// lastVersion returns the largest version tag of the main module, or "". Pre-releases do not count.
func lastVersion(ctx context.Context, root string) (string, error) {
	tags, err := git(ctx, root, "tag", "--list", "v*")
	if err != nil {
		return "", err
	}
	last := ""
	for tag := range strings.FieldsSeq(tags) {
		if semver.IsValid(tag) && semver.Prerelease(tag) == "" && (last == "" || semver.Compare(tag, last) > 0) {
			last = tag
		}
	}
	return last, nil
}

// commitRelease commits the release in dependency order: CHANGELOG first, as part of the main module's archive, then go.mod and
// go.sum of each module after its requirements. go.sum has the hashes of their archives. A pre-release leaves CHANGELOG as it is.
func commitRelease(ctx context.Context, root string, modules []*goModule, version string, proxy *fileProxy) error {
	if semver.Prerelease(version) == "" {
		if err := writeChangelog(filepath.Join(root, "CHANGELOG.md"), version, time.Now()); err != nil {
			return err
		}
	}
	for _, m := range modules {
		if err := m.setRequirements(root, version); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := tidyAll(ctx, root, modules, false); err != nil {
		return err
	}
	fmt.Printf("release: ok tidy (%s)\n", time.Since(began).Round(time.Second))
	if _, err := git(ctx, root, "commit", "--allow-empty", "-qam", "Release "+version); err != nil {
		return err
	}
	for _, m := range published(modules) {
		began := time.Now()
		folder := filepath.Join(root, m.folder)
		if _, err := output(ctx, proxy.goCommand(folder, "mod", "tidy")); err != nil {
			return err
		}
		if err := proxy.checkTypes(ctx, folder); err != nil {
			return err
		}
		if _, err := git(ctx, root, "commit", "--amend", "--allow-empty", "-qa", "--no-edit"); err != nil {
			return err
		}
		if err := proxy.add(ctx, root, m, version); err != nil {
			return err
		}
		fmt.Printf("release: %s %s (%s)\n", m.path, version, time.Since(began).Round(time.Second))
	}
	for _, m := range modules {
		if m.published {
			continue
		}
		began := time.Now()
		if err := proxy.checkTypes(ctx, filepath.Join(root, m.folder)); err != nil {
			return err
		}
		fmt.Printf("release: ok types of %s (%s)\n", m.path, time.Since(began).Round(time.Second))
	}
	return nil
}

// setRequirements sets the versions of the repository's modules in m's go.mod.
func (m *goModule) setRequirements(root, version string) error {
	path := filepath.Join(root, m.folder, "go.mod")
	file, err := parseGoMod(path)
	if err != nil {
		return err
	}
	for _, required := range m.requires {
		if err := file.AddRequire(required, version); err != nil {
			return err
		}
	}
	return os.WriteFile(path, modfile.Format(file.Syntax), 0o644) //nolint:gosec // as other sources
}

// changelogSection returns the text below a heading of CHANGELOG: "Unreleased", or "VERSION, DATE".
func changelogSection(changelog, name string) string {
	for _, section := range strings.Split("\n"+changelog, "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		if before, _, _ := strings.Cut(heading, ","); before == name {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

const unreleased = "## Unreleased\n"

// writeChangelog moves the changes from the heading "Unreleased" to the heading of the version.
func writeChangelog(path, version string, date time.Time) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := strings.Replace(string(content), " There is no release yet.", "", 1)
	if strings.Count(text, unreleased) != 1 {
		return fmt.Errorf("%s has not exactly one heading %q", path, strings.TrimSpace(unreleased))
	}
	text = strings.Replace(text, unreleased, unreleased+"\n## "+version+", "+date.Format(time.DateOnly)+"\n", 1)
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // as other documents
}

package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
)

// Method selects the agent of a migration.
type Method string

// The methods. Entries of managedFields are always moved by the client, because the server's migration fails on them.
const (
	// Auto is ByServer if the server runs migrations, otherwise ByClient.
	Auto Method = ""
	// ByServer creates a StorageVersionMigration and waits for its end. It stops at the first failed object. Kubernetes 1.37 serves
	// it, and 1.36 with the feature gate StorageVersionMigrator and storagemigration.k8s.io/v1beta1.
	ByServer Method = "server"
	// ByClient patches the objects. It continues after failed objects.
	ByClient Method = "client"
)

const (
	defaultQPS     = 100
	defaultWorkers = 10
	// maxPasses bounds the passes over the objects of a definition that changes meanwhile.
	maxPasses = 3
)

// propagationDelay is the time in which all API servers observe a changed definition. An API server that lags would still store
// objects in the previous storage version.
var propagationDelay = 5 * time.Second

// Options configure [Migrate]. The zero value and nil are the defaults.
type Options struct {
	// Method selects the agent.
	Method Method
	// QPS is the maximum number of patches per second. 0 means 100, a negative number no limit. The server's migration has its own.
	QPS float64
	// Workers is the number of concurrent patches. 0 means 10.
	Workers int
	// DryRun sends the client's patches as dry runs: objects that would fail are reported, and nothing is changed.
	DryRun bool
	// OnProgress is called after every object. Calls are serialized.
	OnProgress func(dynamic.ForEachProgress)
}

// Result describes a migration.
type Result struct {
	// StorageVersion is the version of all stored objects if Migrate returned no error.
	StorageVersion string
	// Objects is the number of objects. Failed is the number of objects with an error.
	Objects, Failed int
	// Rewritten is the number of the client's patches by which an object changed, including concurrent changes. It is 0 for dry
	// runs.
	Rewritten int
	// ManagedFields is the number of objects with moved entries of managedFields.
	ManagedFields int
	// ByServer is set if a StorageVersionMigration rewrote the objects.
	ByServer bool
	// Pruned are the versions removed from status.storedVersions, or with DryRun the versions to remove.
	Pruned []string
}

// Migrate rewrites the objects of the named CustomResourceDefinition in its storage version and prunes status.storedVersions. If
// objects fail, the other objects are rewritten, and status.storedVersions stays: the error joins a [*dynamic.ObjectError] for each
// of up to 1000 objects. Objects deleted meanwhile do not count. The result is valid with an error, too, unless it is nil.
//
// After a change of the definition, Migrate waits up to five seconds until all API servers use it. If spec changes during three
// passes, Migrate returns an error. Requests that fail without a response end the migration after some attempts.
func Migrate(ctx context.Context, client *dynamic.Client, definition string, opts *Options) (*Result, error) {
	m := &migration{client: client, name: definition}
	if opts != nil {
		m.opts = *opts
	}
	m.setDefaults()
	if err := m.run(ctx); err != nil {
		return m.result, fmt.Errorf("migrate %s: %w", definition, err)
	}
	return m.result, nil
}

type migration struct {
	client      *dynamic.Client
	definitions *dynamic.Resource
	name        string
	opts        Options
	bucket      *retry.Bucket
	result      *Result // of the current pass
}

func (m *migration) setDefaults() {
	if m.opts.Workers <= 0 {
		m.opts.Workers = defaultWorkers
	}
	if m.opts.QPS == 0 {
		m.opts.QPS = defaultQPS
	}
	m.bucket = &retry.Bucket{Burst: m.opts.Workers}
	if m.opts.QPS > 0 {
		m.bucket.Interval = time.Duration(float64(time.Second) / m.opts.QPS)
	}
}

func (m *migration) run(ctx context.Context) error {
	var err error
	if m.definitions, err = m.client.Resource(ctx, "customresourcedefinitions.apiextensions.k8s.io"); err != nil {
		return err
	}
	for range maxPasses {
		def, err := m.read(ctx)
		if err != nil {
			return err
		}
		isCurrent, err := m.pass(ctx, def)
		if err != nil || isCurrent {
			return err
		}
	}
	return fmt.Errorf("the definition changed during each of %d passes (migrate again when it is stable)", maxPasses)
}

// pass rewrites all objects and prunes status.storedVersions. It reports whether the definition has stayed the same.
func (m *migration) pass(ctx context.Context, def *definition) (isCurrent bool, err error) {
	outdated := def.outdated()
	m.result = &Result{StorageVersion: def.storage()}
	if err := retry.Sleep(ctx, def.propagation(time.Now())); err != nil {
		return false, err
	}
	if err := m.rewrite(ctx, def, def.mayBeOutdated()); err != nil {
		if len(outdated) > 0 {
			err = fmt.Errorf("%w\nstatus.storedVersions keeps %v", err, def.Status.StoredVersions)
		}
		return false, err
	}
	isCurrent = true
	if !m.opts.DryRun {
		isCurrent, err = m.setStoredVersions(ctx, def, []string{def.storage()})
	}
	if isCurrent && err == nil {
		m.result.Pruned = outdated
	}
	return isCurrent, err
}

// rewrite moves outdated entries of managedFields and, if objects may be stored in an outdated version, rewrites all objects.
func (m *migration) rewrite(ctx context.Context, def *definition, isOutdated bool) error {
	if !isOutdated || m.opts.DryRun || m.opts.Method == ByClient {
		return m.patchObjects(ctx, def, isOutdated)
	}
	migrations, err := m.serverMigrations(ctx)
	switch {
	case err != nil:
		return err
	case migrations == nil && m.opts.Method == ByServer:
		return errors.New("the server does not serve StorageVersionMigrations (use ByClient)")
	case migrations == nil:
		return m.patchObjects(ctx, def, true)
	}
	// The server's migration fails on entries of managedFields with a version that the definition no longer has.
	if err := m.patchObjects(ctx, def, false); err != nil {
		return err
	}
	err = m.migrateByServer(ctx, migrations, def)
	switch {
	case errors.Is(err, errNotRunning) && m.opts.Method == Auto:
		return m.patchObjects(ctx, def, true)
	case err != nil && ctx.Err() == nil: // the server may have pruned status.storedVersions
		_, restoreErr := m.setStoredVersions(ctx, def, def.Status.StoredVersions)
		err = errors.Join(err, restoreErr)
	}
	m.result.ByServer = err == nil
	return err
}

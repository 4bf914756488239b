package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
)

// startDelay is the time in which the controller of StorageVersionMigrations sets the first condition.
var startDelay = 10 * time.Second

// errNotRunning reports that no controller runs StorageVersionMigrations.
var errNotRunning = fmt.Errorf("the StorageVersionMigration has no condition after %v (kube-controller-manager does not run the controller)", startDelay)

// serverMigrations returns the handle on StorageVersionMigrations, or nil if the server does not serve a supported version.
func (m *migration) serverMigrations(ctx context.Context) (*dynamic.Resource, error) {
	migrations, err := m.client.Resource(ctx, "storageversionmigrations.storagemigration.k8s.io")
	var noMatch *restmapper.NoMatchError
	switch {
	case errors.As(err, &noMatch):
		return nil, nil //nolint:nilnil // absence is no error
	case err != nil:
		return nil, err
	case migrations.APIResource().GVR.Version == "v1alpha1": // of another form
		return nil, nil //nolint:nilnil // absence is no error
	}
	return migrations, nil
}

// migrateByServer creates a StorageVersionMigration and waits for its end. A migration of the same generation of the definition,
// created by an interrupted call, is continued. A migration that the call has waited for is deleted.
func (m *migration) migrateByServer(ctx context.Context, migrations *dynamic.Resource, def *definition) error {
	name := fmt.Sprintf("anykind-%s-%d", def.Metadata.UID, def.Metadata.Generation)
	if err := createMigration(ctx, migrations, name, def); err != nil {
		return err
	}
	err := waitForMigration(ctx, migrations.Named(name))
	if ctx.Err() != nil {
		return err // the server continues
	}
	if _, deleteErr := migrations.Delete(ctx, name, nil); deleteErr != nil && !apierrors.IsNotFound(deleteErr) {
		err = errors.Join(err, deleteErr)
	}
	return err
}

// waitForMigration waits for the end of a migration. It returns errNotRunning without a first condition. After the migration, the
// controller ends the condition StorageMigrating of the definition, and then the condition Running; a deletion before would keep it
// from that.
func waitForMigration(ctx context.Context, migration *dynamic.Resource) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.AfterFunc(startDelay, func() { cancel(errNotRunning) })
	defer start.Stop()
	for change, err := range migration.Follow(ctx, nil) {
		switch {
		case errors.Is(context.Cause(ctx), errNotRunning):
			return errNotRunning
		case err != nil:
			return err
		case change.Type == watch.Deleted:
			return errors.New("the StorageVersionMigration was deleted (migrate again)")
		case change.Object == nil:
			continue
		}
		if _, hasStarted, _ := unstructured.Get[[]any](change.Object, "status", "conditions"); hasStarted {
			start.Stop()
		}
		running, _, _ := unstructured.Get[string](change.Object, "status", "conditions", "[type=Running]", "status")
		if succeeded, err := hasSucceeded(change.Object); (succeeded || err != nil) && running != string(metav1.ConditionTrue) {
			return err
		}
	}
	return nil // unreachable: Follow ends with an error
}

// createMigration creates a migration. An existing one that has ended is replaced.
func createMigration(ctx context.Context, migrations *dynamic.Resource, name string, def *definition) error {
	wanted := &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"resource": map[string]any{"group": def.Spec.Group, "resource": def.Spec.Names.Plural}},
	}}
	_, err := migrations.Create(ctx, wanted, nil)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing, err := migrations.Get(ctx, name, nil)
	if err != nil {
		return err
	}
	if succeeded, err := hasSucceeded(existing); !succeeded && err == nil {
		return nil // running
	}
	uid := existing.GetUID()
	if _, err := migrations.Delete(ctx, name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
		return err
	}
	_, err = migrations.Create(ctx, wanted, nil)
	return err
}

// hasSucceeded reports the condition Succeeded. The condition Failed is an error.
func hasSucceeded(obj *unstructured.Object) (bool, error) {
	status, _, err := unstructured.Get[string](obj, "status", "conditions", "[type=Failed]", "status")
	if err != nil {
		return false, err
	}
	if status == string(metav1.ConditionTrue) {
		message, _, _ := unstructured.Get[string](obj, "status", "conditions", "[type=Failed]", "message")
		return false, fmt.Errorf("the server's StorageVersionMigration failed: %s", message)
	}
	status, _, err = unstructured.Get[string](obj, "status", "conditions", "[type=Succeeded]", "status")
	return status == string(metav1.ConditionTrue), err
}

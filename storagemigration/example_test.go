package storagemigration_test

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/storagemigration"
)

// Failed objects are printed at once. The other objects are rewritten.
func ExampleMigrate() {
	migrate := func(ctx context.Context, client *dynamic.Client) error {
		result, err := storagemigration.Migrate(ctx, client, "gears.example.com", &storagemigration.Options{
			QPS: 50,
			OnProgress: func(p dynamic.ForEachProgress) {
				if p.Err != nil {
					fmt.Println(p.Key, p.Err)
				}
			},
		})
		if err != nil {
			return err
		}
		fmt.Printf("%d objects are stored in %s, %v can be removed", result.Objects, result.StorageVersion, result.Pruned)
		return nil
	}
	_ = migrate
}

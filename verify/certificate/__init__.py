"""A proof as data: what `lift.checker` replays."""

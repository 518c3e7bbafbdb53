"""Contents of files: fields with units, platform, application, scenario; loading, merging and locating."""

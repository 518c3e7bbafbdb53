"""What a file may say: fields with units, platform, application, scenario; loading, merging and locating."""
